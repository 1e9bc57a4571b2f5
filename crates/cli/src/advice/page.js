"use strict";
(() => {
  const root = document.documentElement;
  const dark = () => root.dataset.theme === "dark" ||
    (root.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const data = JSON.parse(document.getElementById("curves").textContent);
  const colours = ["#777777", "#4477aa", "#cc6677"];
  const dashes = [[4, 3], [], [8, 3]];
  const form = ms => ms >= 1000 ? +(ms / 1000).toPrecision(3) + " s" : +ms.toPrecision(3) + " ms";
  let charts = [];
  const draw = () => {
    charts.forEach(chart => chart.destroy());
    charts = data.roles.map((role, at) => {
      const box = document.getElementById("chart" + at);
      const times = [...new Set(role.lines.flatMap(line => line.map(point => point[0])))].sort((a, b) => a - b);
      const share = line => {
        let next = 0, value = null;
        return times.map(time => {
          while (next < line.length && line[next][0] <= time) value = 100 * line[next++][1];
          return next === 0 ? null : value;
        });
      };
      const style = getComputedStyle(root);
      const ink = style.getPropertyValue("--ink"), grid = style.getPropertyValue("--line");
      const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
      return new uPlot({
        width: box.clientWidth, height: 260,
        scales: { x: { time: false, distr: 3 }, y: { range: [0, 100] } },
        series: [
          { label: "within", value: (_, v) => v == null ? "" : form(v) },
          ...role.lines.map((_, n) => ({
            label: data.settings[n], stroke: colours[n], width: 2, dash: dashes[n], spanGaps: true,
            value: (_, v) => v == null ? "" : v.toFixed(1) + " %",
          })),
        ],
        axes: [
          { ...axis, values: (_, ticks) => ticks.map(tick => tick == null ? "" : form(tick)) },
          { ...axis, values: (_, ticks) => ticks.map(tick => tick + " %") },
        ],
      }, [times, ...role.lines.map(share)], box);
    });
  };
  document.getElementById("theme").onclick = () => { root.dataset.theme = dark() ? "light" : "dark"; draw(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("resize", draw);
  addEventListener("beforeprint", () => { root.dataset.theme = "light"; draw(); });
  draw();
})();
