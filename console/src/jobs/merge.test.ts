import { describe, expect, it } from "vitest";
import { read } from "./document";
import { merged } from "./merge";

const BASE = {
  name: "a",
  timeout: "1h",
  retry: { attempts: 2 },
  tasks: [
    { id: "x", run: { command: ["x"] } },
    { id: "w", run: { command: ["w"] } },
  ],
};
const MINE = `# mine
name: a
timeout: 2h
retry:
  attempts: 2 # enough
tasks:
  - id: x
    run:
      command: [x, --fast]
  - id: w
    run:
      command: [w]
`;

describe("two edits of one version", () => {
  it("are both kept where they are of different fields", () => {
    const theirs = {
      ...BASE,
      retry: { attempts: 5, delay: "1m" },
      tasks: [...BASE.tasks, { id: "z", run: { command: ["z"] } }],
    };
    const { written, conflicts } = merged(read(MINE), BASE, theirs);
    expect(conflicts).toEqual([]);
    expect(written.text).toContain("attempts: 5 # enough");
    expect(written.value).toEqual({
      name: "a",
      timeout: "2h",
      retry: { attempts: 5, delay: "1m" },
      tasks: [
        { id: "x", run: { command: ["x", "--fast"] } },
        { id: "w", run: { command: ["w"] } },
        { id: "z", run: { command: ["z"] } },
      ],
    });
  });

  it("lose what the other took out, unless it was changed here", () => {
    const [x, w] = BASE.tasks;
    expect(merged(read(MINE), BASE, { ...BASE, tasks: [x] }).written.value?.tasks).toHaveLength(1);
    const { written, conflicts } = merged(read(MINE), BASE, { ...BASE, tasks: [w] });
    expect(written.value?.tasks).toHaveLength(2);
    expect(conflicts.map(({ path }) => path)).toEqual(["tasks[0]"]);
  });

  it("keep mine where both changed the same field, and say so", () => {
    const { written, conflicts } = merged(read(MINE), BASE, { ...BASE, timeout: "3h" });
    expect(written.text).toBe(MINE);
    expect(conflicts).toEqual([{ path: "timeout", mine: "2h", theirs: "3h" }]);
  });
});
