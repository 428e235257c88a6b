// What notes/explore/model.js computes for the settings on standard input; explore_grid.cpp does the same with the
// reference lessons. One setting a line, as JSON; one line an answer: names and values, for explore_test.py to compare.
"use strict";
for (const script of ["devices", "model", "state"]) require(`../../notes/explore/${script}.js`);
const explore = globalThis.explore;

for (const line of require("fs").readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const setting = JSON.parse(line);
  const f = explore.figures(setting, explore.device_named(setting.device));
  const {tensor, vector, points, n, kv, B, M, flash1_wins, ...rest} = f;
  const answer = {P: tensor.flop_per_s, W: tensor.bytes_per_s, vector: vector.flop_per_s, n, kv, B, M,
    flash1_wins: Number(flash1_wins), matmul_cost: explore.matmul_cost(B, f.F, f.D, f.b).bytes};
  for (const [key, value] of Object.entries(rest)) if (!"b D F L".split(" ").includes(key)) answer[key] = value;
  for (const [key, point] of Object.entries(points)) {
    for (const part of ["intensity", "attainable", "share"]) answer[`${key}.${part}`] = point[part];
    answer[`${key}.compute_bound`] = Number(point.compute_bound);
  }
  console.log(Object.keys(answer).sort().map((key) => `${key} ${answer[key]}`).join(" "));
}
