import { describe, expect, it } from "vitest";
import { optionsAt } from "./complete";
import { Shapes } from "./shapes";
import { spotAt } from "./spot";

const shapes = new Shapes({
  JobDefinition: {
    type: "object",
    properties: {
      name: { type: "string" },
      overlap: { anyOf: [{ type: "string", enum: ["allow", "skip"] }, { type: "null" }] },
      schedule: {
        anyOf: [
          { type: "string" },
          { type: "object", properties: { cron: { type: "string" }, timezone: { type: "string" } } },
        ],
      },
      params: { type: "object" },
      tasks: { type: "array", items: { $ref: "#/components/schemas/Task" } },
    },
  },
  Task: {
    type: "object",
    required: ["id"],
    properties: {
      id: { type: "string" },
      needs: { type: "array", items: { type: "string" } },
      when: { enum: ["all_success", "always"] },
      run: { $ref: "#/components/schemas/Step" },
    },
  },
  Step: {
    anyOf: [
      { type: "object", required: ["command"], properties: { command: {}, env: {} } },
      { type: "object", required: ["python"], properties: { python: {}, args: {} } },
    ],
  },
});

function labels(text: string): string[] {
  const spot = spotAt(text);
  return spot ? optionsAt(shapes, spot, text).map((one) => one.label) : [];
}

describe("completion", () => {
  it("offers fields that are not there yet", () => {
    expect(labels("name: a\nov")).toEqual(["overlap", "schedule", "params", "tasks"]);
    expect(labels("name: a\nschedule:\n  cron: x\n  ")).toEqual(["timezone"]);
    expect(labels("tasks:\n  - id: a\n    ")).toEqual(["needs", "when", "run"]);
    expect(labels("tasks:\n- id: a\n  run:\n    command: x\n- ")).toEqual(["id", "needs", "when", "run"]);
  });

  it("knows what goes with a kind of step", () => {
    expect(labels("tasks:\n  - id: a\n    run:\n      ")).toEqual(["command", "env", "python", "args"]);
    expect(labels("tasks:\n  - id: a\n    run:\n      python: x\n      ")).toEqual(["args"]);
    expect(labels("tasks:\n  - id: a\n    run: {python: x, ")).toEqual(["args"]);
  });

  it("offers right values, and tasks by their ids", () => {
    expect(labels("overlap: ")).toEqual(["allow", "skip"]);
    expect(labels("tasks:\n  - id: a\n    when: al")).toEqual(["all_success", "always"]);
    expect(labels("tasks:\n  - id: a\n  - id: b\n    needs: [")).toEqual(["a", "b"]);
    expect(labels("tasks:\n  - id: a\n    needs:\n      - ")).toEqual(["a"]);
  });

  it("keeps still in comments, quotes and blocks of text", () => {
    expect(spotAt("name: a # ov")).toBeNull();
    expect(spotAt('name: "ov')).toBeNull();
    expect(spotAt("description: |\n  ov")).toBeNull();
    expect(labels("description: |\n  text\n\nov")).toContain("overlap");
  });
});
