import { RE2JS } from 're2js'
import { type FileHook, PLAIN_MATCHER } from '../agent-file/file-hook.ts'
import type { ClaudeCall } from './claude-calls.ts'

const compiled: Map<string, { test(text: string): boolean } | null> = new Map()
const MOST_COMPILED = 1_000

/**
 * Tells whether a hook looks at a call. A matcher is a list of names, or a regular expression that is found anywhere in a name,
 * in linear time. One that cannot be compiled looks at every call.
 */
export function isMatched({ matcher }: Pick<FileHook, 'matcher'>, { name, aliases }: ClaudeCall): boolean {
  const names = [name, ...aliases]
  if (matcher === '') return true
  if (PLAIN_MATCHER.test(matcher)) {
    const wanted = matcher.split(/[|,]/).map((one) => one.trim())
    return names.some((one) => wanted.includes(one) || wanted.some((server) => isServer(server, one)))
  }
  const pattern = compile(matcher)
  return pattern === null || names.some((one) => pattern.test(one))
}

/** `mcp__github` means each tool of this server. */
function isServer(wanted: string, name: string): boolean {
  return wanted.startsWith('mcp__') && name.startsWith(`${wanted}__`)
}

function compile(matcher: string): { test(text: string): boolean } | null {
  const known = compiled.get(matcher)
  if (known !== undefined) return known
  if (compiled.size >= MOST_COMPILED) compiled.clear()
  const made = compileNow(matcher)
  compiled.set(matcher, made)
  return made
}

function compileNow(matcher: string): { test(text: string): boolean } | null {
  try {
    const pattern = RE2JS.compile(RE2JS.translateRegExp(matcher))
    return { test: (text) => pattern.matcher(text).find() }
  } catch {
    return null
  }
}
