/**
 * Changes as they happen, over one WebSocket. Whoever was cut off converges by asking again: every connection that is
 * made anew begins with a fresh snapshot of all that is on screen.
 */

import { useEffect, useSyncExternalStore } from "react";
import { session } from "./session";

export interface Change {
  jobId: string;
  runId?: string;
  taskId?: string;
  state: string;
  seq: number;
  [more: string]: unknown;
}

export type LiveState = "off" | "connecting" | "on" | "lost";
type Hears = (changes: readonly Change[]) => void;

const TOKEN_AGAIN_MS = 4 * 60_000;
const PING_MS = 30_000;
const SILENT_MS = 75_000;
const WAIT_MAX_MS = 15_000;

class Live {
  private socket: WebSocket | null = null;
  private state: LiveState = "off";
  private attempts = 0;
  private timers: number[] = [];
  private retry: number | undefined;
  private heardAt = 0;
  private welcomed = false;
  private readonly topics = new Map<string, number>();
  private readonly hears = new Set<Hears>();
  private readonly again = new Set<() => void>();
  private readonly watching = new Set<() => void>();

  current = (): LiveState => this.state;

  watch = (changed: () => void): (() => void) => {
    this.watching.add(changed);
    return () => this.watching.delete(changed);
  };

  /** Be told of changes, and of every connection that was made anew. */
  hear(changed: Hears, reconnected: () => void): () => void {
    this.hears.add(changed);
    this.again.add(reconnected);
    return () => {
      this.hears.delete(changed);
      this.again.delete(reconnected);
    };
  }

  subscribe(topic: string): () => void {
    const before = this.topics.get(topic) ?? 0;
    this.topics.set(topic, before + 1);
    if (before === 0 && this.welcomed) this.send({ subscribe: [topic] });
    return () => {
      const left = (this.topics.get(topic) ?? 1) - 1;
      if (left > 0) {
        this.topics.set(topic, left);
        return;
      }
      this.topics.delete(topic);
      if (this.welcomed) this.send({ unsubscribe: [topic] });
    };
  }

  start(): void {
    this.stop();
    this.connect();
  }

  stop(): void {
    window.clearTimeout(this.retry);
    this.retry = undefined;
    this.attempts = 0;
    this.drop();
    this.become("off");
  }

  private connect(): void {
    const signedIn = session.get();
    if (!signedIn) return;
    this.become(this.attempts ? "lost" : "connecting");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/live`);
    this.socket = socket;
    socket.onopen = () => this.prove();
    socket.onmessage = (event) => this.receive(String(event.data));
    socket.onclose = () => {
      if (this.socket === socket) this.lose();
    };
  }

  private prove(): void {
    const signedIn = session.get();
    if (signedIn) this.send({ token: signedIn.token, namespace: signedIn.namespace });
  }

  private receive(text: string): void {
    this.heardAt = Date.now();
    const message = JSON.parse(text) as { type: string; changes?: Change[] };
    if (message.type === "welcome" && !this.welcomed) this.arrive();
    else if (message.type === "changes" && message.changes) for (const hear of this.hears) hear(message.changes);
    else if (message.type === "closing") this.socket?.close();
  }

  private arrive(): void {
    const isAgain = this.attempts > 0;
    this.welcomed = true;
    this.attempts = 0;
    const topics = [...this.topics.keys()];
    for (let first = 0; first < topics.length; first += 50) this.send({ subscribe: topics.slice(first, first + 50) });
    this.become("on");
    this.timers.push(window.setInterval(() => this.prove(), TOKEN_AGAIN_MS));
    this.timers.push(
      window.setInterval(() => {
        if (Date.now() - this.heardAt > SILENT_MS) this.lose();
        else this.send({ ping: true });
      }, PING_MS),
    );
    if (isAgain) for (const tell of this.again) tell();
  }

  private lose(): void {
    this.drop();
    if (!session.get()) {
      this.become("off");
      return;
    }
    this.attempts += 1;
    this.become("lost");
    const most = Math.min(WAIT_MAX_MS, 250 * 2 ** Math.min(this.attempts, 8));
    this.retry = window.setTimeout(() => this.connect(), most / 2 + (Math.random() * most) / 2);
  }

  private drop(): void {
    for (const timer of this.timers) window.clearInterval(timer);
    this.timers = [];
    this.welcomed = false;
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  private send(message: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  private become(state: LiveState): void {
    if (this.state === state) return;
    this.state = state;
    for (const changed of this.watching) changed();
  }
}

export const live = new Live();

export function useLiveState(): LiveState {
  return useSyncExternalStore(live.watch, live.current);
}

/** Hear of `runs`, `job:<job>` or `run:<job>/<run>` while this is on screen. */
export function useTopic(topic: string | null): void {
  useEffect(() => (topic ? live.subscribe(topic) : undefined), [topic]);
}
