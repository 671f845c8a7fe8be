// The one client of the page, and the token that it speaks with.
//
// Stays true: the token comes in the fragment, which is never sent, and leaves the address at once; it stays in this tab.

import { ClientError, connect, type LegateClient } from 'legate/client'
import { fileFetch, isFile } from '../file/answers.ts'
import { Cell, useCell } from '../window/cell.ts'

const KEY = 'legate.token'
const REFUSED = 'legate.refused'

/** Whether the server knows us. */
export type Session = 'unknown' | 'known' | 'no-token' | 'refused'

const session = new Cell<Session>('unknown')

/** Another token than ours, that a link brought: nobody changes who we are without asking. */
const offered = new Cell<string | null>(null)

/** The run that the address named beside the token: `legate open ID` prints such an address. */
export const namedRun: string | null = readFragment()

export const client: LegateClient = connect(
  isFile
    ? { url: 'http://file.invalid', fetch: fileFetch }
    : { url: location.origin, token: () => storedToken() ?? '' },
)

/** Takes `token` and `run` out of the fragment. Other fragments name nodes, and stay. */
function readFragment(): string | null {
  const words = new URLSearchParams(location.hash.slice(1))
  const token = words.get('token')?.trim() ?? null
  const run = words.get('run')
  const own = storedToken()
  if (token !== null && own !== null && own !== token) offered.set(token)
  else if (token !== null) store(KEY, token)
  if (token !== null || run !== null) history.replaceState(null, '', location.pathname + location.search)
  return run
}

/** A token that comes while the page is open leaves the address, too; the run beside it is opened. */
globalThis.addEventListener?.('hashchange', () => {
  if (!new URLSearchParams(location.hash.slice(1)).has('token')) return
  const run = readFragment()
  if (offered.get() !== null) return
  if (run !== null) history.replaceState(null, '', `#${new URLSearchParams({ run })}`)
  location.reload()
})

function storedToken(): string | null {
  try {
    return sessionStorage.getItem(KEY)
  } catch {
    return null
  }
}

export function hasToken(): boolean {
  return storedToken() !== null
}

/** Null takes it away. */
function store(key: string, value: string | null): void {
  try {
    if (value === null) sessionStorage.removeItem(key)
    else sessionStorage.setItem(key, value)
  } catch {
    // A browser that keeps nothing asks again with the next page.
  }
}

export function useSession(): Session {
  return useCell(session)
}

export function useOfferedToken(): string | null {
  return useCell(offered)
}

/** Leaves the token that a link brought. */
export function refuseOffer(): void {
  offered.set(null)
}

/**
 * Speaks with another token from now on. The link that the server printed does as well. The page begins anew: nothing that it has
 * read for somebody else stays.
 */
export function signIn(given: string): void {
  store(REFUSED, null)
  store(KEY, tokenIn(given).trim())
  location.reload()
}

/** Forgets the token and all that was read with it. */
export function signOut(): void {
  store(KEY, null)
  location.replace('/')
}

/** The token of a link, or the text itself. */
function tokenIn(given: string): string {
  const [, fragment] = given.split('#')
  return new URLSearchParams(fragment).get('token') ?? given
}

/** Hears how the server took the token. One that it refuses goes, and with it all that was read. */
export function noteSession(error: unknown): void {
  if (error === null) session.set('known')
  if (error === null || !isUnauthenticated(error)) return
  if (storedToken() === null) return session.set(wasRefused() ? 'refused' : 'no-token')
  store(KEY, null)
  store(REFUSED, '1')
  if (storedToken() === null) location.reload()
}

function wasRefused(): boolean {
  try {
    return sessionStorage.getItem(REFUSED) !== null
  } catch {
    return false
  }
}

export function isUnauthenticated(error: unknown): boolean {
  return error instanceof ClientError && error.status === 401
}

/** An error in words for people. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
