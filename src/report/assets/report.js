// Draws the charts that the page carries as Vega-Lite specifications, and serves the layer list: filter, order, theme.
(() => {
  'use strict';
  const config = {
    background: null, font: 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif', view: { stroke: null },
    axis: { labelColor: 'var(--soft)', titleColor: 'var(--soft)', gridColor: 'var(--grid)', domainColor: 'var(--axis)', tickColor: 'var(--axis)', labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500 },
    legend: { labelColor: 'var(--ink)', labelFontSize: 12, symbolSize: 90 }, text: { fontSize: 12 },
  };
  const charts = JSON.parse(document.getElementById('charts').textContent);
  const drawn = [];
  for (const [name, spec] of Object.entries(charts)) {
    const place = document.querySelector(`[data-chart="${name}"] .plot`);
    if (!place) continue;
    drawn.push(vegaEmbed(place, spec, { mode: 'vega-lite', renderer: 'svg', actions: false, config })
      .then(({ view }) => {
        place.closest('[data-chart]').dataset.drawn = 'yes';
        const svg = place.querySelector('svg');
        if (svg) { svg.setAttribute('role', 'img'); svg.setAttribute('aria-label', spec.description); }
        return view;
      })
      .catch((error) => { place.textContent = `This chart could not be drawn (${error.message}); its numbers are in the table below it.`; console.error(error); }));
  }
  Promise.all(drawn).then((views) => { document.documentElement.dataset.ready = 'yes'; window.loopeggViews = views; });

  const list = document.getElementById('site-list');
  if (list) {
    const rows = [...list.querySelectorAll('.site')];
    const find = document.getElementById('find'), which = document.getElementById('which'), order = document.getElementById('order'), count = document.getElementById('count');
    const refresh = () => {
      const text = find.value.trim().toLowerCase();
      const sorted = [...rows].sort((a, b) => order.value === 'network' ? a.dataset.index - b.dataset.index : b.dataset[order.value] - a.dataset[order.value]);
      let shown = 0;
      for (const row of sorted) {
        const hit = (!text || row.dataset.text.includes(text)) && (which.value === 'all' || row.dataset.changed === which.value);
        row.hidden = !hit;
        shown += hit;
        list.append(row);
      }
      count.textContent = `${shown} of ${rows.length} shown`;
    };
    for (const control of [find, which, order]) control.addEventListener('input', refresh);
    refresh();
  }

  const theme = document.getElementById('theme');
  const dark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const label = () => { theme.textContent = dark() ? 'Light' : 'Dark'; theme.setAttribute('aria-label', `Switch to ${dark() ? 'light' : 'dark'} colours`); };
  theme.addEventListener('click', () => { document.documentElement.dataset.theme = dark() ? 'light' : 'dark'; label(); });
  label();
})();
