import { describe, expect, it } from "vitest";
import { changed, lineOf, placeOf, read, written } from "./document";

const TEXT = `# What the team reads at breakfast.
name: daily-report
schedule: {cron: "0 6 * * 1-5", timezone: Europe/Berlin} # before anybody comes

tasks:
  # Takes long.
  - id: extract
    run:
      command: [python, "extract.py"] # in the image
    timeout: 1h
  - id: load
    needs: [extract]
    run: {lambda: load-sales}
`;

describe("a job as text", () => {
  it("is what it was after it was read and nothing was changed", () => {
    expect(changed(read(TEXT), ["name"], "daily-report").text).toBe(TEXT.replace('"extract.py"', '"extract.py"'));
  });

  it("keeps its comments when a field is changed, put in or taken out", () => {
    let now = changed(read(TEXT), ["schedule", "cron"], "0 7 * * *");
    now = changed(now, ["tasks", 0, "retry", "attempts"], 3);
    now = changed(now, ["description"], "Sales");
    now = changed(now, ["tasks", 0, "timeout"], undefined);
    expect(now.text).toBe(`# What the team reads at breakfast.
name: daily-report
description: Sales
schedule: {cron: "0 7 * * *", timezone: Europe/Berlin} # before anybody comes

tasks:
  # Takes long.
  - id: extract
    retry:
      attempts: 3
    run:
      command: [python, "extract.py"] # in the image
  - id: load
    needs: [extract]
    run: {lambda: load-sales}
`);
  });

  it("loses what is empty without its only field", () => {
    const now = changed(read("name: a\nretry:\n  attempts: 2\n"), ["retry", "attempts"], undefined);
    expect(now.text).toBe("name: a\n");
  });

  it("makes way for fields below what was a single value, an alias or nothing", () => {
    expect(changed(read("schedule:\n"), ["schedule", "every"], "5m").value).toEqual({ schedule: { every: "5m" } });
    const shared = read("retry: &r {attempts: 2}\ntasks:\n  - id: a\n    retry: *r\n");
    expect(changed(shared, ["tasks", 0, "retry", "attempts"], 5).value).toEqual({
      retry: { attempts: 2 },
      tasks: [{ id: "a", retry: { attempts: 5 } }],
    });
    expect(changed(read(""), ["name"], "a").text).toBe("name: a\n");
  });

  it("quotes what other readers of YAML would take for something else", () => {
    expect(changed(read("name: a\n"), ["deadline"], "07:00").text).toBe('name: a\ndeadline: "07:00"\n');
    expect(written({ params: { on: "yes" } })).toBe('params:\n  "on": "yes"\n');
  });

  it("knows where each field is that the API names", () => {
    const now = read(TEXT);
    const said = (path: string) => {
      const { from, to } = placeOf(now, path);
      return [TEXT.slice(from, to), lineOf(TEXT, from)];
    };
    expect(said("schedule.cron")).toEqual(['"0 6 * * 1-5"', 3]);
    expect(said("tasks[1].needs[0]")).toEqual(["extract", 12]);
    expect(said("tasks[0].run.command")).toEqual(["command", 9]);
    expect(said("tasks[1].timeout")).toEqual(["id", 11]);
    expect(said("overlap")).toEqual(["# What the team reads at breakfast.", 1]);
  });

  it("says where it cannot be read", () => {
    const { value, misread } = read("name: a\nschedule: {cron: 1\nx: [\n");
    expect(value).toBeNull();
    expect(misread[0]?.message).toMatch(/\.$/);
    expect(read("- a\n").misread[0]?.message).toContain("fields");
    expect(read("name: a\nname: b\n").misread[0]?.from).toBe(8);
  });
});
