import { describe, expect, it } from "vitest";
import { edited, read } from "../document";
import { asLine, asWords } from "./shell";
import { copyTask, freeId, moveTask, removeTask, renameTask, spread } from "./tasks";

const TASKS = `tasks:
  # first
  - id: extract
    run: {command: [x]}
  - id: load
    needs: [extract]
    if: \${tasks.extract.output.rows} > 0
    run: {command: "y \${tasks.extract.output.path} tasks.extract.none"}
`;

describe("the list of tasks", () => {
  it("says a task's new id wherever others need it or read its output", () => {
    const { text } = edited(read(TASKS), (doc) => renameTask(doc, 0, "extract", "fetch"));
    expect(text).toContain("# first\n  - id: fetch");
    expect(text).toContain("needs: [fetch]");
    expect(text).toContain("if: ${tasks.fetch.output.rows} > 0");
    expect(text).toContain("y ${tasks.fetch.output.path} tasks.extract.none");
  });

  it("leaves nobody in need of a task that was taken out", () => {
    const { value } = edited(read(TASKS), (doc) => removeTask(doc, 0, "extract"));
    expect(value?.tasks).toHaveLength(1);
    expect(value?.tasks).not.toHaveProperty("0.needs");
  });

  it("copies and moves tasks", () => {
    const ids = (text: string) => [...text.matchAll(/- id: (.*)/g)].map(([, id]) => id);
    expect(ids(edited(read(TASKS), (doc) => copyTask(doc, 0, freeId(["extract"], "extract"))).text)).toEqual([
      "extract",
      "extract-2",
      "load",
    ]);
    expect(ids(edited(read(TASKS), (doc) => moveTask(doc, 1, -1)).text)).toEqual(["load", "extract"]);
  });

  it("makes a task of the only step of a job", () => {
    const { text } = edited(read("name: a\nrun:\n  command: x # why\n"), spread);
    expect(text).toBe("name: a\ntasks:\n  - id: main\n    run:\n      command: x # why\n");
  });
});

describe("a command as a line", () => {
  it.each([
    [["python", "a b", "it's", "", "${params.region}"], `python 'a b' 'it'"'"'s' '' \${params.region}`],
    [["echo", 'say "hi"'], `echo 'say "hi"'`],
  ])("is written as a shell would read it: %j", (words, line) => {
    expect(asLine(words)).toBe(line);
    expect(asWords(line)).toEqual(words);
  });

  it("is split as a shell would", () => {
    expect(asWords('a\\ b "c\\"d" e"f"g')).toEqual(["a b", 'c"d', "efg"]);
    expect(asWords("a 'b")).toBeNull();
  });
});
