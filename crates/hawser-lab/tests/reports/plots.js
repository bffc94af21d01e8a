[...document.querySelectorAll('svg.plot')].map(plot => {
  const box = node => { const b = node.getBoundingClientRect(); return [b.left + scrollX, b.top + scrollY, b.width, b.height]; };
  const paint = node => { const s = getComputedStyle(node); return s.fill === 'none' ? s.stroke : s.fill; };
  const parts = [...plot.querySelectorAll('.curve, .bar, .layer, .dot')];
  const end = Math.min(innerWidth, (plot.closest('figure') ?? plot).getBoundingClientRect().right);
  return { end, title: plot.querySelector('title').textContent, description: plot.querySelector('desc').textContent, place: box(plot),
           parts: parts.map(part => ({ kind: part.classList[0], paint: paint(part), place: box(part) })) };
})
