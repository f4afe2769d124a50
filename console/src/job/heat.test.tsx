import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { cellsOf, HeatMap, inCounts, type LedgerDay, toneOf } from "./heat";

const UNTIL = "2026-11-18";

function day(name: string, counts: Record<string, number>): LedgerDay {
  return { day: name, judgedAt: `${name}T23:59:00Z`, counts };
}

describe("the heat map", () => {
  it("has a square for each day of the year until today, in columns of weeks", () => {
    const cells = cellsOf([], UNTIL);
    expect(cells.at(-1)).toMatchObject({ day: UNTIL, weekday: 3, week: 52 });
    expect(cells[0]).toMatchObject({ day: "2025-11-16", weekday: 0, week: 0 });
    expect(new Set(cells.map((cell) => cell.day)).size).toBe(cells.length);
  });

  it("shows a day by the worst of what happened on it", () => {
    expect(toneOf({ fired: 23, missing: 1 })).toBe("bad");
    expect(toneOf({ fired: 24, extra: 1 })).toBe("bad");
    expect(toneOf({ skipped: 3 })).toBe("warn");
    expect(toneOf({ fired: 1, skipped: 3 })).toBe("good");
    expect(toneOf({ pending: 1 })).toBe("wait");
    expect(toneOf({ expired: 9 })).toBe("muted");
    expect(toneOf({})).toBe("none");
    expect(inCounts({ fired: 2, missing: 1 })).toBe("1 missing, 2 fired");
    expect(inCounts({})).toBe("no fires");
  });

  it("is walked with the arrow keys, and Enter chooses a day", async () => {
    const chosen: string[] = [];
    const days = [day(UNTIL, { fired: 3 }), day("2026-11-11", { missing: 2, fired: 1 })];
    render(<HeatMap days={days} until={UNTIL} chosen={null} choose={(name) => chosen.push(name)} />);
    const squares = screen.getAllByRole("button");
    expect(squares.filter((one) => one.getAttribute("tabindex") === "0")).toHaveLength(1);
    squares.at(-1)?.focus();
    await userEvent.keyboard("{ArrowLeft}{Enter}{ArrowUp} ");
    expect(chosen).toEqual(["2026-11-11", "2026-11-10"]);
    expect(screen.getByRole("button", { name: /2 missing, 1 fired/ })).toBeTruthy();
  });
});
