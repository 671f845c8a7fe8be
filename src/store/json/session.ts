import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { StoreError } from '../../base/error.ts'
import { OWN_TEXT, parseJson } from '../../base/json.ts'
import { isSessionFile, MOST_BYTES, readSessionFile, sessionFile, writeSessionFile } from '../session-file.ts'
import type { SessionStore } from '../session-store.ts'
import { codeOf, fileError } from './error.ts'

export interface JsonSession extends SessionStore {
  /** The ids of all sessions in the folder. */
  list(): string[]
  /** False when there was none. */
  delete(sessionId: string): boolean
}

/** Each session as one document in a folder: `<folder>/<session_id>.json`. */
export function jsonSession(folder: string): JsonSession {
  if (typeof folder !== 'string' || folder === '') {
    throw new StoreError('store', 'jsonSession() needs the path of a folder: jsonSession("sessions").')
  }
  const home = resolve(folder)
  const within = <T>(file: string, use: () => T): T => {
    try {
      return use()
    } catch (error) {
      throw fileError(error, file)
    }
  }
  const fileOf = (id: string) => sessionFile(home, id)
  return {
    save: (session) => {
      const file = fileOf(session.session_id)
      within(file, () => {
        mkdirSync(home, { recursive: true, mode: 0o700 })
        writeSessionFile(file, `${JSON.stringify(session, null, 2)}\n`)
      })
    },
    load: (id) => read(fileOf(id)),
    list: () => within(home, () => filesIn(home).flatMap((name) => idIn(join(home, name)))),
    delete: (id) => {
      const file = fileOf(id)
      return within(file, () => {
        const isThere = lstatSync(file, { throwIfNoEntry: false }) !== undefined
        rmSync(file, { force: true })
        return isThere
      })
    },
  }
}

const LIMITS = { ...OWN_TEXT, maxBytes: MOST_BYTES, maxDepth: 100 }

function read(file: string): unknown {
  const text = readSessionFile(file)
  if (text === undefined) return undefined
  const parsed = parseJson(text, LIMITS)
  if (parsed.ok) return parsed.value
  throw new StoreError('store', `The session in ${file} cannot be read: ${parsed.error}`, { details: { path: file } })
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter(isSessionFile).sort()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** A file of something else is none of ours. */
function idIn(file: string): string[] {
  try {
    const document = read(file) as { readonly session_id?: unknown } | null | undefined
    const id = document?.session_id
    return typeof id === 'string' && sessionFile(resolve(file, '..'), id) === file ? [id] : []
  } catch {
    return []
  }
}
