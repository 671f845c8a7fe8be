import { messageOf } from '../../core/base/error.ts'
import type { Json } from '../../core/base/json.ts'
import { readYaml } from '../../core/base/text-tree/read-yaml.ts'
import { TextProblem, type TextTree } from '../../core/base/text-tree/tree.ts'
import type { NoticeParts } from './notice.ts'

export type ParsedYaml =
  | { readonly ok: true; readonly tree: TextTree }
  | { readonly ok: false; readonly finding: NoticeParts }

const LIMITS = { deepest: 100, mostValues: 20_000, mostWords: 50_000, hasTemplates: true } as const

/** Parses YAML as recipe and agent files write it, and never throws: an unquoted `{{ name }}` is a text. */
export async function parseYaml(text: string): Promise<ParsedYaml> {
  try {
    return { ok: true, tree: await readYaml(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text, LIMITS) }
  } catch (error) {
    const message = `not valid YAML: ${messageOf(error)}`
    if (!(error instanceof TextProblem)) return { ok: false, finding: { code: 'syntax', message, line: null } }
    const { at, hint } = error
    return { ok: false, finding: { code: 'syntax', message, line: at.line, ...(hint === undefined ? {} : { hint }) } }
  }
}

/**
 * Writes YAML for people: texts of several lines become literal blocks, so that templates stay intact; keys keep their
 * order.
 */
export async function writeYaml(value: { readonly [key: string]: Json | undefined }): Promise<string> {
  const { Document, Scalar, visit } = await import('yaml')
  const document = new Document(withoutUndefined(value))
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && node.value.includes('\n')) node.type = Scalar.BLOCK_LITERAL
    },
  })
  return document.toString({ lineWidth: 0, blockQuote: 'literal', aliasDuplicateObjects: false } as object)
}

function withoutUndefined(value: { readonly [key: string]: Json | undefined }): Json {
  return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, Json] => entry[1] !== undefined))
}
