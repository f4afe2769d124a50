import { describe, expect, it } from "vitest";
import type { Task } from "../tasks";
import { arrange, CAREFUL_MOST } from "./arrange";
import { stepFrom } from "./keys";
import { layered } from "./layered";
import { HEIGHT, type Layout, levelsOf, type ToArrange, WIDTH } from "./layout";
import { groupVertex, structureOf } from "./structure";

function task(id: string, needs: readonly string[] = [], group = ""): Task {
  const rest = {
    state: "waiting",
    reason: null,
    attempt: 0,
    attempts: [],
    startedAt: null,
    endedAt: null,
    output: null,
  };
  return { ...rest, id, needs: [...needs], group, carriedFrom: "" };
}

function asked(tasks: readonly Task[], closed: ReadonlySet<string> = new Set()): ToArrange {
  const { vertices, edges } = structureOf(tasks, closed);
  return { ids: vertices.map(({ id }) => id), groups: vertices.map(({ group }) => group), edges };
}

/** Levels of tasks, each of which needs some of the level before. */
function wide(levels: number, each: number): Task[] {
  const name = (level: number, row: number) => `t${level}-${row}`;
  return Array.from({ length: levels * each }, (_, number) => {
    const [level, row] = [Math.floor(number / each), number % each];
    const needs = level === 0 ? [] : [name(level - 1, row), name(level - 1, (row * 7 + level) % each)];
    return task(name(level, row), [...new Set(needs)]);
  });
}

function overlaps(layout: Pick<Layout, "x" | "y">): number {
  const places = layout.x.map((x, vertex) => ({ x, y: layout.y[vertex] ?? 0 })).sort((a, b) => a.x - b.x);
  let found = 0;
  places.forEach((one, at) => {
    for (let other = at + 1; other < places.length; other += 1) {
      const two = places[other];
      if (!two || two.x >= one.x + WIDTH) break;
      if (Math.abs(two.y - one.y) < HEIGHT) found += 1;
    }
  });
  return found;
}

const DIAMOND = [task("a"), task("b", ["a"]), task("c", ["a"]), task("d", ["b", "c"]), task("e", ["a", "d"])];

describe("the structure", () => {
  it("puts tasks in topological order, whatever the order of the job", () => {
    const { vertices } = structureOf([...DIAMOND].reverse());
    const order = vertices.map(({ id }) => id);
    for (const { id, needs } of DIAMOND) {
      for (const need of needs) expect(order.indexOf(need)).toBeLessThan(order.indexOf(id));
    }
  });

  it("leaves instances of mapped tasks out", () => {
    const { vertices } = structureOf([task("load"), task("load[0]"), task("load[1]")]);
    expect(vertices.map(({ id }) => id)).toEqual(["load"]);
  });

  it("makes one vertex of a closed group, with the edges of what is in it", () => {
    const tasks = [task("a"), task("b", ["a"], "g"), task("c", ["a", "b"], "g.h"), task("d", ["c", "b"])];
    const { vertices, edges } = structureOf(tasks, new Set(["g"]));
    expect(vertices.map(({ id }) => id)).toEqual(["a", groupVertex("g"), "d"]);
    expect(vertices[1]?.members).toEqual(["b", "c"]);
    expect(edges).toEqual([
      [0, 1],
      [1, 2],
    ]);
  });

  it("bears closed groups that need each other", () => {
    const tasks = [task("x", [], "g"), task("a", ["x"]), task("y", ["a"], "g")];
    const { vertices, edges } = structureOf(tasks, new Set(["g"]));
    expect(vertices).toHaveLength(2);
    expect(edges).toHaveLength(2);
    expect(overlaps(arrange(asked(tasks, new Set(["g"]))))).toBe(0);
  });

  it("has the same key as long as only states change", () => {
    const before = structureOf(DIAMOND);
    const after = structureOf(DIAMOND.map((one) => ({ ...one, state: "failed" })));
    expect(after.key).toBe(before.key);
    expect(structureOf([...DIAMOND, task("f")]).key).not.toBe(before.key);
    expect(structureOf(DIAMOND.map((one) => ({ ...one, group: "g" }))).key).not.toBe(before.key);
  });
});

describe("the layout", () => {
  it("counts levels along the longest way", () => {
    const { ids, edges } = asked(DIAMOND);
    const level = levelsOf(ids.length, edges);
    expect(Object.fromEntries(ids.map((id, vertex) => [id, level[vertex]]))).toEqual({ a: 0, b: 1, c: 1, d: 2, e: 3 });
  });

  it.each([
    ["carefully", DIAMOND],
    ["of groups", DIAMOND.map((one, number) => ({ ...one, group: number % 2 ? "g" : "h.i" }))],
    ["of many", wide(12, 60)],
  ])("lets every edge lead to the right, and nothing overlap: %s", (_, tasks) => {
    const wanted = asked(tasks);
    const layout = arrange(wanted);
    for (const [from, to] of wanted.edges) expect(layout.x[to]).toBeGreaterThan((layout.x[from] ?? 0) + WIDTH);
    expect(overlaps(layout)).toBe(0);
    expect(Math.max(...layout.x) + WIDTH).toBeLessThanOrEqual(layout.width);
    expect(Math.max(...layout.y) + HEIGHT).toBeLessThanOrEqual(layout.height);
    expect(Math.min(...layout.x, ...layout.y)).toBeGreaterThanOrEqual(0);
  });

  it("draws the box of a group around its tasks, and around no other", () => {
    const tasks = [task("a"), task("b", ["a"], "g"), task("c", ["b"], "g"), task("d", ["a"]), task("e", ["c", "d"])];
    const wanted = asked(tasks);
    const { x, y, boxes } = arrange(wanted);
    const box = boxes[0];
    expect(boxes.map(({ group }) => group)).toEqual(["g"]);
    wanted.ids.forEach((_, vertex) => {
      if (!box) return;
      const [left, top] = [x[vertex] ?? 0, y[vertex] ?? 0];
      const apart =
        left >= box.x + box.width || left + WIDTH <= box.x || top >= box.y + box.height || top + HEIGHT <= box.y;
      expect(apart).toBe(wanted.groups[vertex] !== "g");
    });
  });

  it("crosses no edges where none need cross", () => {
    const edges = Array.from({ length: 30 }, (_, row) => [row, 59 - row] as const);
    const ids = Array.from({ length: 60 }, (_, number) => `t${number}`);
    const { y } = layered({ ids, groups: ids.map(() => ""), edges });
    const rows = edges.map(([from, to]) => [y[from] ?? 0, y[to] ?? 0]).sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0));
    const ends = rows.map(([, end]) => end ?? 0);
    expect(ends).toEqual([...ends].sort((a, b) => a - b));
  });

  it("breaks a level that is much higher than wide", () => {
    const fan = [task("first"), ...Array.from({ length: 1_000 }, (_, number) => task(`t${number}`, ["first"]))];
    const { width, height, ...places } = layered(asked(fan));
    expect(width / height).toBeGreaterThan(0.8);
    expect(width / height).toBeLessThan(3.5);
    expect(overlaps(places)).toBe(0);
  });

  it("is quick about ten thousand tasks", () => {
    const wanted = asked(wide(40, 250));
    expect(wanted.ids.length).toBeGreaterThan(CAREFUL_MOST);
    expect(arrange(wanted).tookMs).toBeLessThan(5_000);
  });
});

describe("the arrow keys", () => {
  const structure = structureOf(DIAMOND);
  const layout = arrange(asked(DIAMOND));
  const from = (id: string, key: string) => {
    const to = stepFrom(structure, layout, structure.places.get(id) ?? -1, key);
    return to === null ? null : structure.vertices[to]?.id;
  };
  const [upper, lower] = ["b", "c"].sort(
    (one, two) => (layout.y[structure.places.get(one) ?? 0] ?? 0) - (layout.y[structure.places.get(two) ?? 0] ?? 0),
  ) as [string, string];

  it("lead along edges, and end where those end", () => {
    expect(from(upper, "ArrowRight")).toBe("d");
    expect(from(upper, "ArrowLeft")).toBe("a");
    expect(from("a", "ArrowLeft")).toBe(null);
    expect(from("e", "ArrowRight")).toBe(null);
    expect([from("d", "Home"), from("a", "End"), from("a", "x")]).toEqual(["a", "e", null]);
  });

  it("lead up and down among those of a level", () => {
    expect(from(upper, "ArrowDown")).toBe(lower);
    expect(from(lower, "ArrowUp")).toBe(upper);
    expect(from(upper, "ArrowUp")).toBe(null);
    expect(from("a", "ArrowDown")).toBe(null);
  });
});
