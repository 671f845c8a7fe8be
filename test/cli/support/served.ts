import type { Place, Process } from './cli.ts'

/** A server of `legate serve`, by its process. */
export interface Served {
  readonly process: Process
  /** The line that it printed. */
  readonly url: string
  readonly base: string
  readonly token: string
}

/** Starts `legate serve`, by default on a free port, and waits for its address. */
export async function served(place: Place, args: readonly string[] = [], port = '0'): Promise<Served> {
  const process = place.legate(['serve', '--port', port, ...args])
  await process.seen(() => process.stdout.includes('\n'), 'the address')
  const url = process.stdout.trim()
  const [base = '', token = ''] = url.split('/#token=')
  return { process, url, base, token }
}

/** Asks the server of that address. */
export function ask({ base, token }: Pick<Served, 'base' | 'token'>, path: string, init: RequestInit = {}) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return fetch(base + path, { ...init, headers })
}
