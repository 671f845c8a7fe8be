import type { Run, RunEvent, RunOutcome } from '../../../../index.ts'

/** How following a run came to its end. */
export type Followed =
  | { readonly how: 'ended'; readonly outcome: RunOutcome }
  /** `asked` said so. */
  | { readonly how: 'asks' }
  | { readonly how: 'late' }
  | { readonly how: 'left' }

export interface RunFollowOptions {
  readonly waitMs: number
  readonly signal: AbortSignal
  /** Hears every event. */
  readonly heard: (event: RunEvent) => void
  /** Does the run wait for the person at the other end now? Asked when an event says that it waits for one. */
  readonly asked: () => Promise<boolean>
}

/** Follows a run until it ends, waits for the caller, the time is over, or the caller leaves. The run goes on in every case. */
export async function followRun(run: Run, options: RunFollowOptions): Promise<Followed> {
  const { waitMs, signal } = options
  const events = run[Symbol.asyncIterator]()
  const clock = startClock(waitMs, signal)
  try {
    for (;;) {
      const next = await Promise.race([events.next(), clock.over])
      if ('how' in next) return next
      if (next.done === true) return { how: 'ended', outcome: await run.result }
      options.heard(next.value)
      if (asks(next.value) && (await options.asked())) return { how: 'asks' }
    }
  } finally {
    clock.stop()
    events.return?.().catch(() => undefined)
  }
}

function asks(event: RunEvent): boolean {
  return event.type === 'approval-request' || (event.type === 'question' && event.to === 'person')
}

function startClock(ms: number, signal: AbortSignal) {
  let stop: () => void = () => undefined
  const over = new Promise<Followed>((resolve) => {
    const timer = setTimeout(() => resolve({ how: 'late' }), ms)
    const leave = () => resolve({ how: 'left' })
    if (signal.aborted) leave()
    signal.addEventListener('abort', leave, { once: true })
    stop = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', leave)
    }
  })
  return { over, stop }
}

/** Says in a line what an event means to somebody who waits; undefined for events that are not worth one. */
export function progressText(event: RunEvent): string | undefined {
  const said = SAYS[event.type]?.(event as never)
  return said === undefined ? undefined : `${event.path.join(' > ')}: ${said}`
}

type Says = { readonly [Type in RunEvent['type']]?: (event: Extract<RunEvent, { type: Type }>) => string }

const SAYS: Says = {
  'run-queued': () => 'waits its turn',
  'run-start': () => 'begins',
  'tool-call': ({ call }) => `calls ${call.name}`,
  'tool-result': ({ tool, isError }) => `${tool} ${isError ? 'failed' : 'is done'}`,
  'delegation-start': ({ agent }) => `asks ${agent}`,
  'delegation-end': ({ agent, status }) => `${agent} ended ${status}`,
  'approval-request': ({ request }) => `waits for a person to allow ${request}`,
  'approval-answer': ({ allowed, by }) => `${by} ${allowed ? 'allowed' : 'denied'} it`,
  question: ({ to }) => `waits for an answer of ${to === 'host' ? 'its host' : 'a person'}`,
  retry: ({ attempt }) => `tries again (try ${attempt})`,
  progress: ({ message }) => message,
  warning: ({ message }) => message,
}
