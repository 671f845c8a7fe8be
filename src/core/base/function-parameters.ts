import { type Json, parseJson } from './json.ts'

export interface Parameter {
  readonly name: string
  /** True where a caller may leave it out. */
  readonly isOptional: boolean
  /** The default value, where it is plain JSON. */
  readonly preset?: Json
}

export interface Parameters {
  /** True where the parameters are the fields of one object, as in `({ city, days = 3 }) => ...`. */
  readonly areFields: boolean
  readonly list: readonly Parameter[]
}

/**
 * Reads the parameters of a function from its source: types are gone when code runs, names are not. Undefined where the source
 * does not tell: built-in and bound functions, classes, rest parameters, defaults that are computed.
 */
export function parseParameters(code: (...given: never[]) => unknown): Parameters | undefined {
  const source = Function.prototype.toString.call(code)
  const said = ARROW.exec(source)?.[1] ?? HEAD.exec(source)?.[1]
  if (said === undefined || source.startsWith('class') || source.endsWith('[native code] }')) return undefined
  const words = said.replaceAll(COMMENT, ' ').trim()
  const fields = FIELDS.exec(words)?.[1]
  const list = partsOf(fields ?? words).map((part) => read(part, fields !== undefined))
  return list.every((one) => one !== undefined) ? { areFields: fields !== undefined, list } : undefined
}

const ARROW = /^(?:async\s+)?([\w$]+)\s*=>/
const HEAD = /^(?:async\b\s*)?(?:function\b\s*)?[\w$]*\s*\(([^()]*)\)/
const COMMENT = /\/\*[^*]*\*\/|\/\/[^\n]*/g
const FIELDS = /^\{([^{}]*)\}$/
const PARAMETER = /^([A-Za-z_$][\w$]*)(\s*:\s*[\w$]+)?(?:\s*=\s*([^=]+))?$/

function partsOf(words: string): string[] {
  const parts = words.split(',').map((part) => part.trim())
  if (parts.at(-1) === '') parts.pop()
  return parts
}

function read(part: string, isField: boolean): Parameter | undefined {
  const [, name, renamed, given] = PARAMETER.exec(part) ?? []
  if (name === undefined || (renamed !== undefined && !isField)) return undefined
  if (given === undefined) return { name, isOptional: false }
  const preset = literal(given.trim())
  return preset === undefined ? { name, isOptional: true } : { name, isOptional: true, preset }
}

function literal(text: string): Json | undefined {
  const plain = /^'[^'"\\]*'$/.test(text) ? `"${text.slice(1, -1)}"` : text
  const parsed = parseJson(plain)
  return parsed.ok ? parsed.value : undefined
}
