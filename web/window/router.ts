// Where the page is, and how it goes elsewhere. Nobody else reads or writes the location.

import { useMemo, useSyncExternalStore } from 'react'
import { isFile, pathOfFile } from '../file/answers.ts'

/** In a run that was exported as a file there is no server to ask for paths: the place stands in the fragment. */
const isInFragment = isFile

export interface Place {
  readonly path: string
  readonly query: URLSearchParams
  /** The fragment without its `#`: the id of a node, or nothing. */
  readonly fragment: string
}

export type PageName = 'inbox' | 'new' | 'thread' | 'graph' | 'time' | 'diff' | 'ops' | 'lost'

export interface Route {
  readonly page: PageName
  /** The parts of the path that are values, in order: `/c/{id}`, `/new/{agent}`, `/diff/{a}/{b}`. */
  readonly values: readonly string[]
}

const listeners = new Set<() => void>()

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}

function tell(): void {
  for (const listener of [...listeners]) listener()
}

globalThis.addEventListener?.('popstate', tell)
globalThis.addEventListener?.('hashchange', tell)

function here(): string {
  if (isInFragment) return location.hash.slice(1) || pathOfFile()
  return location.pathname + location.search + location.hash
}

function readPlace(text: string): Place {
  const { pathname, searchParams, hash } = new URL(text, 'http://page.invalid')
  return { path: pathname, query: searchParams, fragment: decode(hash.slice(1)) }
}

export function usePlace(): Place {
  const text = useSyncExternalStore(subscribe, here, here)
  return useMemo(() => readPlace(text), [text])
}

/** Goes to another place of the page. `replace`: the browser's way back leaves this one out. */
export function navigate(to: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const url = hrefOf(to)
  if (replace) history.replaceState(null, '', url)
  else history.pushState(null, '', url)
  tell()
}

/** The text of a link to a place of the page. */
export function hrefOf(to: string): string {
  return isInFragment ? `#${to}` : to
}

/** The whole address of a place, for another browser. */
export function addressOf(to: string): string {
  return new URL(hrefOf(to), location.href).href
}

const PATTERNS: readonly (readonly [RegExp, PageName])[] = [
  [/^\/$/, 'inbox'],
  [/^\/new(?:\/([^/]+))?$/, 'new'],
  [/^\/c\/([^/]+)$/, 'thread'],
  [/^\/c\/([^/]+)\/graph$/, 'graph'],
  [/^\/c\/([^/]+)\/time$/, 'time'],
  [/^\/diff(?:\/([^/]+))?(?:\/([^/]+))?$/, 'diff'],
  [/^\/ops$/, 'ops'],
]

export function routeOf(path: string): Route {
  for (const [pattern, page] of PATTERNS) {
    const found = pattern.exec(path)
    if (found !== null) return { page, values: found.slice(1).flatMap((one) => (one === undefined ? [] : decode(one))) }
  }
  return { page: 'lost', values: [] }
}

/** A part of a path or fragment as it was meant; one that is not well formed stays as it is. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The path of a conversation, of a view of it, or of one of its nodes. */
export function pathOfRun(conversationId: string, view: '' | 'graph' | 'time' = '', nodeId?: string): string {
  return `/c/${encodeURIComponent(conversationId)}${view === '' ? '' : `/${view}`}${nodeId === undefined ? '' : `#${nodeId}`}`
}
