[...document.querySelectorAll('svg.plot')].flatMap(plot => {
  const texts = [...plot.querySelectorAll('text')].map(text => ({ text: text.textContent, box: text.getBoundingClientRect() }));
  const frame = plot.getBoundingClientRect(), found = [];
  texts.forEach((a, i) => {
    if (a.box.left < frame.left - 1 || a.box.right > frame.right + 1 || a.box.top < frame.top - 1 || a.box.bottom > frame.bottom + 1)
      found.push(`${plot.id}: ${a.text} leaves the picture`);
    texts.slice(0, i).forEach(b => {
      const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      if (wide > 1 && high > 4) found.push(`${a.text} lies over ${b.text}`);
    });
  });
  return found;
})
