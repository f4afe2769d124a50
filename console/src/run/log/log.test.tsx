import { fireEvent, render, screen } from "@testing-library/react";
import { beforeAll, describe, expect, it } from "vitest";
import type { LogState } from "./follower";
import { type Line, nextFound, pieces, Search } from "./lines";
import { plain } from "./plain";
import { LogView } from "./view";

const line = (text: string, stream = "stdout", attempt = 1): Line => ({
  at: "2026-11-16T06:00:00.250Z",
  stream,
  text,
  attempt,
});

function state(lines: readonly Line[], more: Partial<LogState> = {}): LogState {
  const rest = { isCut: false, hasEnded: false, isTruncated: false, isReading: false, error: null, version: 1 };
  return { ...rest, lines, ...more };
}

function shown(lines: readonly Line[], more: Partial<Parameters<typeof LogView>[0]> = {}) {
  const follows: boolean[] = [];
  const view = render(
    <LogView
      state={state(lines)}
      word=""
      at={null}
      options={{ times: false, wraps: false }}
      attempts={1}
      isFollowing={false}
      onFollow={(one) => follows.push(one)}
      {...more}
    />,
  );
  const element = screen.getByRole("region", { name: "Log" });
  return { ...view, element, follows };
}

beforeAll(() => {
  // So high is what scrolls, where nothing is laid out.
  Object.defineProperty(HTMLElement.prototype, "offsetHeight", { configurable: true, value: 380 });
  Object.defineProperty(HTMLElement.prototype, "offsetWidth", { configurable: true, value: 600 });
  Object.defineProperty(HTMLElement.prototype, "clientHeight", { configurable: true, value: 380 });
  Element.prototype.scrollTo = function scrollTo(this: Element, to?: ScrollToOptions | number) {
    this.scrollTop = typeof to === "object" ? (to.top ?? 0) : 0;
  } as typeof Element.prototype.scrollTo;
});

describe("a line", () => {
  it("has no colours, titles or links of a terminal", () => {
    expect(plain("\u001b[31mred\u001b[0m \u001b[1;4mbold\u001b[m")).toBe("red bold");
    expect(plain("\u001b]0;title\u0007after \u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\")).toBe("after link");
    expect(plain("\u001b(Ba\u001bMb")).toBe("ab");
  });

  it("hides nothing behind a sequence that does not end", () => {
    expect(plain("before \u001b]0;and the rest")).toBe("before ␛]0;and the rest");
    expect(plain("\u001b[")).toBe("␛[");
  });

  it("shows what cannot be seen", () => {
    expect(plain("a\u0000b\rc\u007f\u0085\td")).toBe("a␀b␍c␡\\u0085\td");
    expect(plain("to \u202eevil")).toBe("to \\u202eevil");
    expect(plain("<script>alert(1)</script> grüße 👩‍🚀")).toBe("<script>alert(1)</script> grüße 👩‍🚀");
  });
});

describe("the search", () => {
  const lines = ["one", "An Error", "two", "no error here, error there"].map((text) => line(text));

  it("finds lines whatever their case, and goes on where it was", () => {
    const search = new Search("ERROR");
    const growing = lines.slice(0, 2);
    expect(search.in(growing)).toEqual([1]);
    growing.push(...lines.slice(2));
    expect(search.in(growing)).toEqual([1, 3]);
    expect(new Search("").in(lines)).toEqual([]);
  });

  it("goes round at the ends", () => {
    expect(nextFound([1, 3], -1, 1)).toBe(1);
    expect(nextFound([1, 3], 1, 1)).toBe(3);
    expect(nextFound([1, 3], 3, 1)).toBe(1);
    expect(nextFound([1, 3], 1, -1)).toBe(3);
    expect(nextFound([], 1, 1)).toBe(null);
  });

  it("cuts a text where the word stands", () => {
    expect(pieces("no error here, Error", "error").map(({ text, isFound }) => (isFound ? `[${text}]` : text))).toEqual([
      "no ",
      "[error]",
      " here, ",
      "[Error]",
    ]);
    expect(pieces("İstanbul", "ist")).toEqual([{ text: "İstanbul", isFound: false }]);
  });
});

describe("the view", () => {
  it("has few of a hundred thousand lines in the page", () => {
    const many = Array.from({ length: 100_000 }, (_, number) => line(`line ${number}`));
    const { container } = shown(many);
    const rows = container.querySelectorAll(".log-row");
    expect(rows.length).toBeGreaterThan(10);
    expect(rows.length).toBeLessThan(120);
    expect(rows[0]?.textContent).toContain("line 0");
  });

  it("shows markup as text", () => {
    const { container } = shown([line("<script>alert(1)</script><b>x</b>")]);
    expect(container.querySelector("script, b")).toBe(null);
    expect(screen.getByText("<script>alert(1)</script><b>x</b>")).toBeTruthy();
  });

  it("marks what was found, and says of which stream a line is", () => {
    const { container } = shown([line("a word", "stderr")], { word: "word" });
    expect(container.querySelector("mark")?.textContent).toBe("word");
    expect(container.querySelector('[data-stream="stderr"] .stream')?.textContent).toBe("err");
  });

  it("says where an attempt begins, of several", () => {
    shown([line("a"), line("b", "stdout", 2), line("c", "stdout", 2)], { attempts: 2 });
    expect(screen.getByText("Attempt 1")).toBeTruthy();
    expect(screen.getAllByText("Attempt 2")).toHaveLength(1);
  });

  it("lets go of the end when one scrolls up, and takes it again there", () => {
    const many = Array.from({ length: 1_000 }, (_, number) => line(`line ${number}`));
    const { element, follows } = shown(many, { isFollowing: true });
    Object.defineProperty(element, "scrollHeight", { configurable: true, value: 19_000 });
    const scroll = (top: number) => {
      element.scrollTop = top;
      fireEvent.scroll(element);
    };
    scroll(18_600);
    scroll(18_000);
    expect(follows.at(-1)).toBe(false);
    scroll(18_620);
    expect(follows.at(-1)).toBe(true);
  });
});
