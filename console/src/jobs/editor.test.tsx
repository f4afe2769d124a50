import { EditorView } from "@codemirror/view";
import { QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Route, Router } from "wouter";
import { cache } from "../api/cache";
import { session } from "../api/session";
import EditJobPage from "../pages/edit-job";

/** The API's client takes hold of `fetch` when it is loaded, which is before anything else here. */
const network = vi.hoisted(() => {
  const held: { answer: typeof fetch } = { answer: () => Promise.reject(new TypeError("There is no server.")) };
  globalThis.fetch = (input, init) => held.answer(input, init);
  return held;
});

/** The server, as far as an editor of jobs sees it. */
class Server {
  versions: { version: number; definition: Record<string, unknown> }[] = [];
  /** What is wrong with a definition, if anything is. */
  judge: (definition: Record<string, unknown>) => { path: string; message: string }[] = () => [];
  readonly asked: { method: string; path: string; body: Record<string, unknown>; headers: Headers }[] = [];

  answer = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const path = new URL(request.url).pathname.replace("/api/v1", "");
    const text = await request.text();
    const body = text ? JSON.parse(text) : {};
    this.asked.push({ method: request.method, path, body, headers: request.headers });
    const { status, said } = this.reply(request, path, body);
    const type = status < 400 ? "application/json" : "application/problem+json";
    return new Response(JSON.stringify(said), { status, headers: { "content-type": type } });
  };

  private reply(request: Request, path: string, body: Record<string, unknown>): { status: number; said: unknown } {
    const newest = this.versions.at(-1);
    if (path === "/session") return { status: 200, said: { role: "editor", namespace: "default" } };
    if (path === "/openapi.json") return { status: 200, said: OPENAPI };
    if (path === "/plan") {
      const errors = this.judge(body);
      if (errors.length) return { status: 400, said: { title: "Bad Request", detail: "Wrong.", errors } };
      return { status: 200, said: planOf(newest?.version ?? null) };
    }
    if (path.endsWith("/versions")) return { status: 200, said: { items: this.shown(), nextCursor: null } };
    if (request.method === "PUT") {
      if (request.headers.get("If-Match") !== String(newest?.version)) {
        return { status: 412, said: { title: "Precondition Failed", detail: "It is another version." } };
      }
      this.versions.push({ version: (newest?.version ?? 0) + 1, definition: body });
      return { status: 200, said: { jobId: "report", version: this.versions.length } };
    }
    return { status: 200, said: { items: [], nextCursor: null } };
  }

  private shown() {
    return [...this.versions].reverse().map(({ version, definition }) => ({
      version,
      definition,
      createdAt: "2026-11-18T12:00:00Z",
      createdBy: "ann",
      changes: [],
      summary: [`version ${version} in words`],
    }));
  }

  puts() {
    return this.asked.filter(({ method }) => method === "PUT");
  }
}

function planOf(version: number | null) {
  return {
    fires: [{ fireAt: "2026-11-19T05:00:00Z", local: "2026-11-19T06:00:00+01:00", note: "" }],
    notes: ["02:30 does not exist on 2027-03-28 in Europe/Berlin: moved to 03:30"],
    runsPerDay: 1,
    loadPerHour: Array(24).fill(0),
    difference: { action: version ? "change" : "create", version, changes: [], summary: ["timeout: 1h → 2h"] },
  };
}

const OPENAPI = {
  components: {
    schemas: {
      JobDefinition: {
        type: "object",
        properties: {
          name: { type: "string" },
          schedule: { $ref: "#/components/schemas/Schedule" },
          timeout: { anyOf: [{ type: "number" }, { type: "string", format: "period" }, { type: "null" }] },
          overlap: { anyOf: [{ type: "string", enum: ["allow", "skip"] }, { type: "null" }] },
        },
      },
      Schedule: {
        anyOf: [
          { type: "string" },
          { type: "object", properties: { cron: { type: "string" }, timezone: { type: "string" } } },
        ],
      },
      Retry: { type: "object", properties: { attempts: { type: "integer" } } },
      Task: { type: "object", required: ["id"], properties: { id: { type: "string" }, run: {}, needs: {} } },
      Step: {
        anyOf: [
          {
            type: "object",
            required: ["command"],
            properties: { command: { anyOf: [{ type: "array" }, { type: "string", format: "command-line" }] } },
          },
        ],
      },
    },
  },
};

const REPORT = {
  name: "report",
  schedule: { cron: "0 6 * * *", timezone: "Europe/Berlin" },
  timeout: "1h",
  tasks: [{ id: "main", run: { command: ["echo", "hi"] } }],
};

let server: Server;

beforeEach(() => {
  server = new Server();
  server.versions = [{ version: 1, definition: REPORT }];
  network.answer = server.answer;
  // The browser's own dialogs, which this DOM does not have.
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close ??= function (this: HTMLDialogElement) {
    this.open = false;
  };
  Range.prototype.getClientRects ??= () => [] as unknown as DOMRectList;
  session.begin({ token: "t", expiresAt: Date.now() + 3_600_000, namespace: "default" });
});

afterEach(() => {
  cleanup(); // a page that is left keeps what was written on it
  cache.clear();
});

function open(path: string) {
  history.replaceState(null, "", path);
  render(
    <QueryClientProvider client={cache}>
      <Router>
        <Route path="/jobs/new" component={EditJobPage} />
        <Route path="/jobs/:job/edit" component={EditJobPage} />
      </Router>
    </QueryClientProvider>,
  );
  return userEvent.setup();
}

/** The text in the editor, which is in a shadow root. */
async function yaml(): Promise<HTMLElement> {
  return waitFor(
    () => {
      const found = document.querySelector(".yaml")?.shadowRoot?.querySelector<HTMLElement>(".cm-content");
      if (!found) throw new Error("There is no editor yet.");
      return found;
    },
    { timeout: 10_000 },
  );
}

function textOf(content: HTMLElement): string {
  return [...content.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n");
}

describe("writing a job", { timeout: 30_000 }, () => {
  it("keeps the form and the YAML in step, comments and all", async () => {
    const user = open("/jobs/report/edit");
    const timeout = await screen.findByLabelText("Time-out of an attempt", {}, { timeout: 10_000 });
    await user.clear(timeout);
    await user.type(timeout, "90");
    await user.click(screen.getByRole("button", { name: "YAML" }));
    const content = await yaml();
    expect(textOf(content)).toContain("timeout: 90");
    expect(textOf(content)).toContain("command: [echo, hi]");
    const view = EditorView.findFromDOM(content);
    view?.dispatch({ changes: { from: 0, insert: "# For the team.\n" } });
    await user.click(screen.getByRole("button", { name: "Form" }));
    const cron = await screen.findByLabelText("Cron expression");
    await user.clear(cron);
    await user.type(cron, "30 2 * * *");
    await user.type(screen.getByLabelText("Command"), " there");
    await user.click(screen.getByRole("button", { name: "YAML" }));
    const after = textOf(await yaml());
    expect(after).toMatch(/^# For the team\.\nname: report\n/);
    expect(after).toContain("30 2 * * *");
    expect(after).toContain("command: [echo, hi, there]");
  });

  it("shows the plan: fires, what the clocks do, and what changes", async () => {
    open("/jobs/report/edit");
    const plan = within(await screen.findByRole("complementary", { name: "Plan" }));
    expect(await plan.findByText(/does not exist on 2027-03-28/, {}, { timeout: 10_000 })).toBeTruthy();
    expect(plan.getByText("timeout: 1h → 2h")).toBeTruthy();
    expect(plan.getByText("11-19 05:00")).toBeTruthy();
  });

  it("says what the API says is wrong, at the field and at its line", async () => {
    server.judge = ({ overlap }) => (overlap ? [{ path: "overlap", message: "'x' is unknown: use allow, skip." }] : []);
    server.versions = [{ version: 1, definition: { ...REPORT, overlap: "x" } }];
    const user = open("/jobs/report/edit?view=yaml");
    const content = await yaml();
    const listed = await screen.findByRole("list", { name: "To correct" }, { timeout: 10_000 });
    expect(listed.textContent).toContain("line 10");
    await waitFor(() => expect(content.querySelector(".cm-lintRange-error")?.textContent).toBe("x"));
    await user.click(screen.getByRole("button", { name: "Form" }));
    const field = await screen.findByLabelText("If the run before is still active");
    expect(field.getAttribute("aria-invalid")).toBe("true");
    await user.selectOptions(field, "skip");
    server.judge = () => [];
    await waitFor(() => expect(screen.queryByRole("list", { name: "To correct" })).toBeNull(), { timeout: 5_000 });
  });

  it("goes on from what somebody else saved meanwhile, with nothing lost", async () => {
    const user = open("/jobs/report/edit");
    const timeout = await screen.findByLabelText("Time-out of an attempt", {}, { timeout: 10_000 });
    await user.clear(timeout);
    await user.type(timeout, "2h");
    server.versions.push({ version: 2, definition: { ...REPORT, overlap: "skip" } });
    await user.keyboard("{Control>}s{/Control}");
    const review = await screen.findByRole("dialog", { name: "Save report" }, { timeout: 5_000 });
    expect(await within(review).findByText("timeout: 1h → 2h", {}, { timeout: 5_000 })).toBeTruthy();
    await user.click(within(review).getByRole("button", { name: "Save as version 2" }));
    const stale = await screen.findByRole("dialog", { name: "Somebody else saved version 2 meanwhile" });
    expect(within(stale).getByText("version 2 in words")).toBeTruthy();
    expect(server.puts()[0]?.headers.get("If-Match")).toBe("1");
    await user.click(within(stale).getByRole("button", { name: "Put my changes on top of version 2" }));
    await user.click(await screen.findByRole("button", { name: "Look over and save" }));
    const again = await screen.findByRole("button", { name: "Save as version 3" }, { timeout: 5_000 });
    await waitFor(() => expect(again.hasAttribute("disabled")).toBe(false), { timeout: 5_000 });
    await user.click(again);
    await waitFor(() => expect(location.pathname).toBe("/jobs/report"));
    const [, put] = server.puts();
    expect(put?.headers.get("If-Match")).toBe("2");
    expect(put?.body).toEqual({ ...REPORT, timeout: "2h", overlap: "skip" });
    expect(server.versions).toHaveLength(3);
  });

  it("finds again what was not saved when one went back", async () => {
    const user = open("/jobs/report/edit");
    await user.type(await screen.findByLabelText("Tags", {}, { timeout: 10_000 }), "finance");
    history.pushState(null, "", "/elsewhere");
    await waitFor(() => expect(screen.queryByLabelText("Tags")).toBeNull());
    history.pushState(null, "", "/jobs/report/edit");
    expect(await screen.findByText(/did not save/)).toBeTruthy();
    expect(await screen.findByDisplayValue("finance")).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "Drop it" }));
    expect(screen.queryByDisplayValue("finance")).toBeNull();
  });
});
