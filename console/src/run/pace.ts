/** Does something soon after it was asked for: the first time at once, then never more often than the pace allows. */

export class Pace {
  private timer: number | undefined;
  private isBusy = false;
  private isAsked = false;
  private endedAt = Number.NEGATIVE_INFINITY;
  private tookMs = 0;

  constructor(
    private readonly run: () => Promise<unknown>,
    private readonly leastMs: number,
    /** What takes long is done so much less often than it could be. */
    private readonly rest = 6,
  ) {}

  ask(): void {
    this.isAsked = true;
    if (this.isBusy || this.timer !== undefined) return;
    const wait = Math.max(this.leastMs, this.tookMs * this.rest) - (performance.now() - this.endedAt);
    if (wait <= 0) void this.go();
    else
      this.timer = window.setTimeout(() => {
        this.timer = undefined;
        void this.go();
      }, wait);
  }

  stop(): void {
    window.clearTimeout(this.timer);
    this.timer = undefined;
    this.isAsked = false;
  }

  private async go(): Promise<void> {
    this.isAsked = false;
    this.isBusy = true;
    const beganAt = performance.now();
    await this.run().catch(() => undefined); // safe: who shows it says what went wrong
    this.isBusy = false;
    this.endedAt = performance.now();
    this.tookMs = this.endedAt - beganAt;
    if (this.isAsked) this.ask();
  }
}
