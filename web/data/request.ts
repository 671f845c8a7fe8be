// Answers of the server that components share: asked for once, shown while they are asked for again.

import { useCallback, useSyncExternalStore } from 'react'
import { isUnauthenticated, noteSession } from './client.ts'

/** An answer, or why there is none. `value` stays while it is asked for again. */
export interface RequestState<Value> {
  readonly value: Value | undefined
  readonly error: unknown
  readonly isBusy: boolean
}

class Request<Value> {
  state: RequestState<Value> = { value: undefined, error: null, isBusy: false }
  readonly listeners = new Set<() => void>()
  ask: (() => Promise<Value>) | null = null
  private turn = 0
  usedAt = Date.now()

  load(): void {
    const { ask } = this
    if (ask === null) return
    const turn = ++this.turn
    this.set({ ...this.state, isBusy: true })
    ask().then(
      (value) => {
        if (turn === this.turn) this.set({ value, error: null, isBusy: false })
      },
      (error: unknown) => {
        if (isUnauthenticated(error)) noteSession(error)
        if (turn === this.turn) this.set({ value: this.state.value, error, isBusy: false })
      },
    )
  }

  private set(state: RequestState<Value>): void {
    this.state = state
    for (const listener of [...this.listeners]) listener()
  }
}

const MOST_KEPT = 200
const requests = new Map<string, Request<unknown>>()

function requestOf<Value>(key: string): Request<Value> {
  const known = requests.get(key) as Request<Value> | undefined
  if (known !== undefined) return known
  const made = new Request<Value>()
  requests.set(key, made as Request<unknown>)
  if (requests.size > MOST_KEPT) dropOldest()
  return made
}

function dropOldest(): void {
  const idle = [...requests].filter(([, { listeners }]) => listeners.size === 0)
  idle.sort(([, a], [, b]) => a.usedAt - b.usedAt)
  for (const [key] of idle.slice(0, MOST_KEPT / 4)) requests.delete(key)
}

const NOTHING: RequestState<never> = { value: undefined, error: null, isBusy: false }

/**
 * The answer to a request, by a key that names it. Without a key nothing is asked. It is asked for when the first component
 * wants it, and again with `reload(key)`.
 */
export function useRequest<Value>(key: string | null, ask: () => Promise<Value>): RequestState<Value> {
  // The key says what is asked: another function with the same key asks the same. It must stay subscribed from one render
  // to the next, for `reload` forgets what nobody listens to.
  const subscribe = useCallback(
    (listener: () => void) => {
      if (key === null) return () => undefined
      const request = requestOf<Value>(key)
      request.listeners.add(listener)
      request.ask = ask
      if (request.state.value === undefined && !request.state.isBusy) request.load()
      return () => {
        request.listeners.delete(listener)
      }
    },
    [key],
  )
  const get = () => {
    if (key === null) return NOTHING
    const request = requestOf<Value>(key)
    request.usedAt = Date.now()
    return request.state
  }
  return useSyncExternalStore(subscribe, get, get)
}

/** Asks again for everything whose key begins so, where somebody looks at it; else forgets it. */
export function reload(prefix: string): void {
  for (const [key, request] of [...requests]) {
    if (!key.startsWith(prefix)) continue
    if (request.listeners.size > 0) request.load()
    else requests.delete(key)
  }
}
