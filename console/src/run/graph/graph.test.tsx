import { act, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeAll, describe, expect, it } from "vitest";
import type { Task } from "../tasks";
import { arrange } from "./arrange";
import Graph from "./graph";
import type { Arrange } from "./use-layout";

const here: Arrange = async (asked) => arrange(asked);

beforeAll(() => {
  window.matchMedia ??= () => ({ matches: false, addEventListener() {}, removeEventListener() {} }) as never;
  // There is nothing to paint on here; what is readable is in the page.
  HTMLCanvasElement.prototype.getContext = () => null;
  Element.prototype.scrollTo ??= () => undefined;
});

function task(id: string, state: string, needs: string[] = [], more: Partial<Task> = {}): Task {
  const rest = { reason: null, attempt: 0, attempts: [], startedAt: null, endedAt: null, output: null };
  return { ...rest, id, state, needs, group: "", carriedFrom: "", ...more };
}

const TASKS = [
  task("extract", "succeeded"),
  task("load", "running", ["extract"], { map: { total: 100, succeeded: 36, failed: 1, open: 63 } }),
  task("check", "failed", ["extract"]),
  task("report", "waiting", ["load", "check"]),
];

async function shown(tasks: readonly Task[], onOpen: (task: string) => void = () => undefined) {
  const view = render(<Graph tasks={tasks} chosen="" onOpen={onOpen} arrange={here} />);
  const field = await screen.findByRole("group", { name: /Graph of the tasks/ });
  const nodes = () => [...field.querySelectorAll<HTMLElement>("button[data-place]")];
  return { ...view, field, nodes };
}

describe("the graph", () => {
  it("has a button for each task, in topological order, that says its state", async () => {
    const { field, nodes } = await shown([...TASKS].reverse());
    const order = nodes().map((node) => node.title);
    expect([order[0], order.at(-1)]).toEqual(["extract", "report"]);
    for (const name of ["extract Succeeded", "load Running 37/100", "check Failed", "report Waiting"]) {
      expect(within(field).getByRole("button", { name })).toBeTruthy();
    }
  });

  it("says a state by colour, glyph and word", async () => {
    const { nodes } = await shown(TASKS);
    const failed = nodes().find((node) => node.title === "check");
    expect(failed?.dataset.tone).toBe("bad");
    expect(failed?.textContent).toContain("✕");
    expect(failed?.textContent).toContain("Failed");
  });

  it("follows the states, and leaves everything where it is", async () => {
    const { nodes, rerender } = await shown(TASKS);
    const before = nodes().map((node) => node.style.transform);
    const changed = TASKS.map((one) => (one.id === "report" ? { ...one, state: "running" } : { ...one }));
    await act(async () => {
      rerender(<Graph tasks={changed} chosen="" onOpen={() => undefined} arrange={here} />);
    });
    const report = nodes().find((node) => node.title === "report");
    expect(report?.dataset.state).toBe("running");
    expect(report?.dataset.tone).toBe("busy");
    expect(nodes().map((node) => node.style.transform)).toEqual(before);
  });

  it("is one stop for the tab key, and the arrows lead along its edges", async () => {
    const opened: string[] = [];
    const { nodes } = await shown(TASKS, (id) => opened.push(id));
    const stops = nodes().filter((node) => node.tabIndex === 0);
    expect(stops.map((node) => node.title)).toEqual(["extract"]);
    stops[0]?.focus();
    const user = userEvent.setup();
    await user.keyboard("{ArrowRight}");
    expect(["load", "check"]).toContain((document.activeElement as HTMLElement).title);
    await user.keyboard("{ArrowRight}");
    expect((document.activeElement as HTMLElement).title).toBe("report");
    await user.keyboard("{ArrowLeft}{ArrowLeft}");
    expect((document.activeElement as HTMLElement).title).toBe("extract");
    await user.keyboard("{End}{Enter}");
    expect(opened).toEqual(["report"]);
  });

  it("opens the task that is pressed", async () => {
    const opened: string[] = [];
    const { nodes } = await shown(TASKS, (id) => opened.push(id));
    const load = nodes().find((node) => node.title === "load");
    if (load) await userEvent.click(load);
    expect(opened).toEqual(["load"]);
  });

  it("closes a group to one button that counts, and opens it again", async () => {
    const grouped = TASKS.map((one) => (one.id === "extract" ? one : { ...one, group: "night" }));
    const { nodes, field } = await shown(grouped);
    await userEvent.click(within(field).getByTitle("Close the group night"));
    expect(await within(field).findByRole("button", { name: "night Failed 1/3 group" })).toBeTruthy();
    expect(nodes()).toHaveLength(2);
    await userEvent.click(within(field).getByRole("button", { name: /^night / }));
    await within(field).findByRole("button", { name: "report Waiting" });
    expect(nodes()).toHaveLength(4);
  });

  it("makes what is not looked for faint, and goes to what is", async () => {
    const { nodes } = await shown(TASKS);
    await userEvent.type(screen.getByRole("searchbox", { name: "Find a task" }), "rep");
    expect(await screen.findByText("1 found")).toBeTruthy();
    const faint = nodes().filter((node) => node.classList.contains("faint-node"));
    expect(faint.map((node) => node.title)).not.toContain("report");
    expect(faint).toHaveLength(3);
  });

  it("counts the states, and shows those of one that is pressed", async () => {
    const { nodes } = await shown(TASKS);
    const failed = screen.getByRole("button", { name: /^Failed 1$/ });
    fireEvent.click(failed);
    expect(failed.getAttribute("aria-pressed")).toBe("true");
    const clear = nodes().filter((node) => !node.classList.contains("faint-node"));
    expect(clear.map((node) => node.title)).toEqual(["check"]);
  });

  it("has only those of a thousand tasks in the page that are in sight", async () => {
    const many = Array.from({ length: 1_000 }, (_, n) => task(`t${n}`, "succeeded", n >= 40 ? [`t${n - 40}`] : []));
    const { field, nodes } = await shown(many);
    expect(nodes()).toHaveLength(1); // from afar they are painted; this one is there for the keys
    for (let times = 0; times < 9; times += 1) fireEvent.keyDown(field, { key: "+" });
    await waitFor(() => expect(nodes().length).toBeGreaterThan(5));
    expect(nodes().length).toBeLessThan(300);
  });
});
