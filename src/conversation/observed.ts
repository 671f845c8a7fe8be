import { InputError } from '../base/error.ts'
import { type Json, toJson } from '../base/json.ts'
import { type Content, isBlock } from '../graph/content.ts'
import type { Observed } from '../graph/turn/observe.ts'

const ROLES = ['user', 'developer', 'agent']

/** What is to be observed, checked: a text or blocks are a user's. */
export function readObserved(given: Content | Observed): Observed {
  const json = toJson(given)
  if (!json.ok) refuse(`It is not JSON: ${json.error}`)
  const isPlain = typeof json.value === 'string' || Array.isArray(json.value)
  const { role, content, ...others } = (isPlain ? { role: 'user', content: json.value } : (json.value ?? {})) as {
    readonly [key: string]: Json
  }
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) refuse(`A message has role and content, not "${unknown}".`)
  if (!ROLES.includes(String(role))) refuse(`Its role is one of ${ROLES.join(', ')}, not ${JSON.stringify(role)}.`)
  if (!isContent(content)) refuse('Its content is a text that is not empty, or a list of blocks.')
  return { role, content } as unknown as Observed
}

/** A text or blocks, checked. */
export function readSaid(given: Content): Content {
  const json = toJson(given)
  const isSaid = json.ok && (json.value === '' || isContent(json.value))
  if (isSaid) return json.value as unknown as Content
  throw new InputError('invalid_input', 'edit(nodeId, content): a text, or a list of blocks.')
}

function isContent(content: Json | undefined): boolean {
  if (typeof content === 'string') return content.trim() !== ''
  return Array.isArray(content) && content.length > 0 && content.every((block) => isBlock(block as Json))
}

function refuse(message: string): never {
  throw new InputError('invalid_input', `conversation.observe(message): ${message}`)
}
