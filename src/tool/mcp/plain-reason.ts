import { messageOf } from '../../base/error.ts'

/** What went wrong between us and a server, in one line. */
export function plainReason(error: unknown): string {
  const data = field(error, 'data')
  if (field(data, 'resultType') === 'input_required') {
    return 'the server asks a person for more input, which is not supported here'
  }
  const offered = offeredVersions(error, data)
  if (offered !== undefined) return `it speaks MCP ${offered}, and we speak 2026-07-28 and the revisions before it`
  const trouble = networkTrouble(error, data)
  if (trouble !== undefined) return `it cannot be reached: ${trouble}`
  const text = field(data, 'text')
  const said = typeof text === 'string' && text.trim() !== '' && !messageOf(error).includes(text) ? `: ${text}` : ''
  const line = `${messageOf(error)}${said}`.replace(PROBE, '').replaceAll(/\s+/g, ' ').trim()
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST).toWellFormed()}...`
}

const LONGEST = 2_000
/** The first request of a connection is the library's: a program that is not there fails it. */
const PROBE = /^Version negotiation probe failed: /

/** The revisions that a server has, where none of them is ours. */
function offeredVersions(error: unknown, data: unknown): string | undefined {
  const supported = field(data, 'supported')
  if (Array.isArray(supported)) return supported.filter((version) => typeof version === 'string').join(', ')
  return /^Server's protocol version is not supported: (.*)$/.exec(messageOf(error))?.[1]
}

/** `fetch failed` says nothing: what it is about is its cause, and its cause's. */
function networkTrouble(error: unknown, data: unknown): string | undefined {
  if (!/\bfetch failed$/.test(messageOf(error))) return undefined
  let cause = field(error, 'cause') ?? field(data, 'cause')
  for (let depth = 0; depth < DEEPEST && field(cause, 'cause') !== undefined; depth++) cause = field(cause, 'cause')
  const code = field(cause, 'code')
  const message = field(cause, 'message')
  return typeof message === 'string' && message !== '' ? messageOf(cause) : typeof code === 'string' ? code : undefined
}

const DEEPEST = 5

function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
