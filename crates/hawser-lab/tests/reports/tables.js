[...document.querySelectorAll('table.figures')].map(table => ({
  rows: table.tBodies[0].rows.length,
  cells: [...table.querySelectorAll('tbody td')].filter(cell => cell.offsetWidth > 0 && cell.offsetHeight > 0).length,
  text: table.innerText }))
