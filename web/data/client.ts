// The one client of the page, and the token that it speaks with.
//
// Stays true: the token comes in the fragment, which is never sent, and leaves the address at once; it stays in this tab.

import { ClientError, connect, type LegateClient } from 'legate/client'
import { fileFetch, isFile } from '../file/answers.ts'
import { Cell, useCell } from './cell.ts'

const KEY = 'legate.token'

/** Whether the server knows us. */
export type Session = 'unknown' | 'known' | 'no-token' | 'refused'

const session = new Cell<Session>('unknown')

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
  const token = words.get('token')
  const run = words.get('run')
  if (token !== null) keep(token)
  if (token !== null || run !== null) history.replaceState(null, '', location.pathname + location.search)
  return run
}

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

function keep(token: string): void {
  try {
    sessionStorage.setItem(KEY, token.trim())
  } catch {
    // A browser that keeps nothing asks again with the next page.
  }
}

export function useSession(): Session {
  return useCell(session)
}

/** Speaks with another token from now on. The link that the server printed does as well. */
export function signIn(given: string): void {
  keep(tokenIn(given))
  session.set('unknown')
}

/** The token of a link, or the text itself. */
function tokenIn(given: string): string {
  const [, fragment] = given.split('#')
  return new URLSearchParams(fragment).get('token') ?? given
}

/** Hears how the server took the token. */
export function noteSession(error: unknown): void {
  if (error === null) session.set('known')
  else if (isUnauthenticated(error)) session.set(storedToken() === null ? 'no-token' : 'refused')
}

export function isUnauthenticated(error: unknown): boolean {
  return error instanceof ClientError && error.status === 401
}

/** An error in words for people. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
