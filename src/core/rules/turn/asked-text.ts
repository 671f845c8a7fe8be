// The words in which a person reads what is asked: the same at every door, beside the hash that the answer names.
//
// Called by: the terminal, editors, forms of MCP, tasks of A2A, interrupts of AG-UI, and pages.
// Must stay true (I11):
//   - Nothing that the hash covers is cut, and every character is visible: line breaks, blanks and marks of direction, too.
//   - A door that has no room for the whole text says so.

import type { Json } from '../../base/json.ts'
import { visible } from '../../base/text.ts'

/** A request for permission, as an event or the list of what waits gives it. */
export interface AskedFacts {
  /** Agent names from the root to the one that asks. */
  readonly path: readonly string[]
  /** `tool:deploy`, `exec:ls`. */
  readonly request: string
  /** The tool of the call; null for a model, and for a server to start, which `input` names. */
  readonly tool: string | null
  readonly input: Json
  /** The layer and rule that require the question. */
  readonly reason: string
}

/**
 * The whole question: who wants what, with all arguments, and why a person must say so. A door that shows changes of files in
 * its own way gives what is wanted as `shown`.
 */
export function askedText({ path, reason, ...wanted }: AskedFacts, shown: string = wantedText(wanted)): string {
  const rule = reason === '' ? '' : `${shown.includes('\n') ? '\n' : '. '}It needs your approval: ${visible(reason)}.`
  return `${visible(path.join(' > '))} wants ${shown}${rule}`
}

type Wanted = Pick<AskedFacts, 'request' | 'tool' | 'input'>

/** Describes completely what a person is asked to allow: the request, and the call it is for if the request does not say it all. */
export function wantedText(wanted: Wanted): string {
  const { request, tool } = wanted
  const call = callText(wanted)
  return tool === null || request === `tool:${tool}` ? call : `${visible(request)} for ${call}`
}

/** Describes the call alone; without a call the request: a model to ask, a server to start, or a secret for either. */
export function callText({ request, tool, input }: Wanted): string {
  if (tool === null) return visible(requestWords({ request, input }))
  const given = withoutSecrets(input, request)
  return `${visible(tool)} ${visible(typeof given === 'string' ? given : JSON.stringify(given))}`
}

/** Hides the words of a command that its request hides. All others must be the same, else the command stays as it is. */
function withoutSecrets(input: Json, request: string): Json {
  const { command, ...others } = fieldsOf(input)
  if (typeof command !== 'string' || !request.startsWith('exec:') || !request.includes(MARK)) return input
  const line = request.slice('exec:'.length)
  const [shown, words] = [line.split(' '), command.split(' ')]
  // No mark holds a blank.
  const isSame = shown.length === words.length && shown.every((word, at) => isShownAs(words[at] ?? '', word))
  return isSame ? { ...others, command: line } : input
}

function isShownAs(word: string, shown: string): boolean {
  if (word === shown) return true
  const [, bare = shown] = /^'([^']*)'$/.exec(shown) ?? []
  const [, before = '', length = '', after = ''] = HIDDEN.exec(bare) ?? []
  const value = word.slice(before.length, word.length - after.length)
  return value.length === Number(length) && /^[\w.=+/-]+$/.test(value) && `${before}${value}${after}` === word
}

const MARK = '***'
/** One mark, such as `***(40:9f86)` for 40 characters. */
const HIDDEN = /^([^*]*)\*\*\*\((\d+):[0-9a-f]{4}\)([^*]*)$/

function requestWords({ request, input }: Pick<Wanted, 'request' | 'input'>): string {
  return serverWords(request, input) ?? (input === null ? request : `${request} ${JSON.stringify(input)}`)
}

/**
 * Describes in words a server that is to be started or contacted, or that gets a secret: the whole command line or address, its
 * folder, and the names of everything passed to it. A model's key is described by where it goes. Undefined for any other request.
 */
function serverWords(request: string, about: Json): string | undefined {
  if (typeof about !== 'object' || about === null || Array.isArray(about)) return undefined
  const { mcp, cwd, env, headers, secrets, model, url } = about as Readonly<Record<string, Json>>
  if (request.startsWith('secret:') && typeof model === 'string') {
    return `${request}, the key of the model ${model}${typeof url === 'string' ? ` at ${url}` : ''}`
  }
  if (typeof mcp !== 'string') return undefined
  return [
    request === `exec:${mcp}` ? `${request}, an MCP server` : `${request}, ${whichServer(request)} ${mcp}`,
    typeof cwd === 'string' ? ` in ${cwd}` : '',
    withNames('variables', env),
    withNames('headers', headers),
    withNames('secrets', secrets),
  ].join('')
}

function whichServer(request: string): string {
  return request.startsWith('secret:') ? 'for the MCP server' : 'the MCP server'
}

function withNames(what: string, names: Json | undefined): string {
  return Array.isArray(names) && names.length > 0 ? `, with the ${what} ${names.join(', ')}` : ''
}

function fieldsOf(value: Json): { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}
