/** Node ends a process that only awaits promises. Waiting for a run is work, so one timer says so while somebody waits. */
export class KeepAlive {
  private timer: ReturnType<typeof setInterval> | undefined
  private holders = 0

  hold(): void {
    this.timer ??= setInterval(() => undefined, 2 ** 30)
    if (this.holders++ === 0) this.timer.ref()
  }

  release(): void {
    if (--this.holders === 0) this.timer?.unref()
  }
}
