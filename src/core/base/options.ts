// Options: one declarative reader for the options of all functions and files.
//
// Owns:      the rules for single values (`int`, `oneOf`, `listOf`, ...), the sentences that refuse a wrong option, and the
//            search for the name that was probably meant.
// Called by: every function that takes options: `readOptions('agent()', given, { retries: int(0, 100), ... })`.
// Must stay true:
//   - Every option has a rule: a new option without one does not compile.
//   - An unknown name is refused, never ignored: a misspelt restriction must not pass for none.
//   - An option that is undefined counts as left out.

import { DefinitionError, InputError } from './error.ts'

/** Checks one option: gives null for a valid value, else words for the values that would be valid. */
export type OptionRule = (value: unknown) => string | null

/** One rule per option: a new option without a rule does not compile. */
export type OptionRules<Options> = { readonly [Name in keyof Required<Options>]: OptionRule }

/**
 * Reads the options of one function, each name by its rule. Refuses unknown names and wrong values with the same sentences
 * everywhere; an option that is undefined counts as left out.
 */
export function readOptions<Options extends object>(
  where: string,
  given: Options,
  rules: OptionRules<NoInfer<Options>>,
): Options {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw refused(`${where} takes an object of options, not ${shown(given)}.`)
  }
  for (const name in given) {
    if (!Object.hasOwn(rules, name)) throw unknownOption(where, name, Object.keys(rules))
    const value = given[name]
    const wanted = value === undefined ? null : rules[name](value)
    if (wanted !== null) throw refused(`${where}: ${name} must be ${wanted}, not ${shownWords(value) ?? shown(value)}.`)
  }
  return given
}

export function int(least: number, most: number = Number.MAX_SAFE_INTEGER): OptionRule {
  const wanted = `a whole number ${range(least, most)}`
  return (value) => (Number.isSafeInteger(value) && isWithin(value, least, most) ? null : wanted)
}

export function number(least: number = Number.NEGATIVE_INFINITY, most: number = Number.POSITIVE_INFINITY): OptionRule {
  const wanted = `a number ${range(least, most)}`.trimEnd()
  return (value) => (Number.isFinite(value) && isWithin(value, least, most) ? null : wanted)
}

export const positive: OptionRule = (value) => (Number.isFinite(value) && Number(value) > 0 ? null : 'a number above 0')

export function oneOf(...words: readonly string[]): OptionRule {
  const wanted = words.map((word) => `"${word}"`).join(', ')
  return (value) => (words.includes(value as string) ? null : `one of ${wanted}`)
}

export const text: OptionRule = (value) => (typeof value === 'string' ? null : 'a text')
export const flag: OptionRule = (value) => (typeof value === 'boolean' ? null : 'true or false')
export const code: OptionRule = (value) => (typeof value === 'function' ? null : 'a function')
export const list: OptionRule = (value) => (Array.isArray(value) ? null : 'a list')

/** Applies a rule to each item of a list: `listOf(text, 'names')`. */
export function listOf(rule: OptionRule, names: string): OptionRule {
  return (value) => (Array.isArray(value) && value.every((item) => rule(item) === null) ? null : `a list of ${names}`)
}

/** Accepts every value, for options that their user checks elsewhere. */
export const anything: OptionRule = () => null

export function record(value: unknown): string | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? null : 'an object'
}

/** Accepts one special value, and every value that the rule accepts. */
export function orJust(only: unknown, rule: OptionRule): OptionRule {
  return (value) => {
    const wanted = value === only ? null : rule(value)
    return wanted === null ? null : `${wanted}, or ${String(only)}`
  }
}

/** Refuses a value without this method, such as a handle that is still a promise: `takes` names what is wanted. */
export function checkHandle(given: unknown, method: PropertyKey, takes: string): void {
  if (typeof Reflect.get(Object(given), method) === 'function') return
  const got = given instanceof Promise ? 'a promise: await it first' : shown(given)
  throw new InputError('invalid_input', `${takes}, not ${got}.`)
}

function isWithin(value: unknown, least: number, most: number): boolean {
  return Number(value) >= least && Number(value) <= most
}

function range(least: number, most: number): string {
  if (most < Number.MAX_SAFE_INTEGER) return `from ${least} to ${most}`
  return least === Number.NEGATIVE_INFINITY ? '' : `of at least ${least}`
}

/** The type of options for functions that take none. */
export type NoOptions = Readonly<Record<string, never>>

function unknownOption(where: string, name: string, names: readonly string[]): DefinitionError {
  const elsewhere = SAID_ELSEWHERE.get(name)
  const meant = elsewhere !== undefined && names.includes(elsewhere) ? elsewhere : nearest(name, names)
  const known = names.length === 0 ? 'It has none.' : `It has ${names.join(', ')}.`
  const hint = meant === undefined ? known : `Did you mean "${meant}"?`
  return refused(`${where} has no option ${shown(name)}. ${hint}`)
}

/** Names that other libraries give to options, and ours for them. */
const SAID_ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['inputSchema', 'input'],
  ['parameters', 'input'],
  ['outputSchema', 'output'],
  ['outputType', 'output'],
  ['system', 'instructions'],
  ['systemPrompt', 'instructions'],
  ['handler', 'execute'],
  ['func', 'execute'],
  ['needsApproval', 'approval'],
  ['handoffs', 'subagents'],
  ['maxSteps', 'budget'],
  ['maxTurns', 'budget'],
  ['temperature', 'settings'],
  ['permissions', 'grant'],
])

const LONGEST = 60

function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'a list' : 'an object'
  const said = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return said.length > LONGEST ? `${said.slice(0, LONGEST)}…` : said
}

/** Quotes the words of a list, so that the wrong one can be seen. */
function shownWords(value: unknown): string | undefined {
  const isOfWords = Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')
  if (!isOfWords) return undefined
  const said = value.map((word) => JSON.stringify(word)).join(', ')
  return said.length > LONGEST ? `[${said.slice(0, LONGEST)}…]` : `[${said}]`
}

function refused(message: string): DefinitionError {
  return new DefinitionError('definition', message)
}

/** The word that was probably meant: one or two letters away, never the word itself. */
export function nearest(written: string, words: readonly string[]): string | undefined {
  if (written.length > 40 || words.includes(written)) return undefined
  const most = written.length < 5 ? 1 : 2
  const near = words.filter((word) => Math.abs(word.length - written.length) <= most)
  const [best] = near.map((word) => ({ word, steps: distance(written, word, most) })).sort((a, b) => a.steps - b.steps)
  return best !== undefined && best.steps <= most ? best.word : undefined
}

/**
 * The words that are most alike, the best first, judged by the pairs of letters that they share. Gives all words where there
 * are at most `most`.
 */
export function mostAlike(written: string, words: readonly string[], most: number): readonly string[] {
  if (words.length <= most) return words
  const pairs = pairsOf(written)
  const scored = words.map((word) => ({ word, score: likeness(pairs, pairsOf(word)) }))
  return scored
    .sort((a, b) => b.score - a.score)
    .slice(0, most)
    .map(({ word }) => word)
}

/** A number from 0 to 1. */
function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let shared = 0
  for (const pair of b) if (a.has(pair)) shared++
  return (2 * shared) / Math.max(1, a.size + b.size)
}

/** The pairs of neighbouring letters in a text. Reads only the first 100 characters: no name is longer. */
function pairsOf(text: string): ReadonlySet<string> {
  const lower = ` ${text.slice(0, 100).toLowerCase()} `
  return new Set(Array.from({ length: lower.length - 1 }, (_, at) => lower.slice(at, at + 2)))
}

/** Counts the letters to insert, remove, replace or swap with their neighbour; Infinity as soon as there are more than `most`. */
function distance(a: string, b: string, most: number): number {
  let earlier: readonly number[] = []
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const least = Math.min(cell(last, j) + 1, cell(row, j - 1) + 1, cell(last, j - 1) + (isSame ? 0 : 1))
      row.push(isSwap ? Math.min(least, cell(earlier, j - 2) + 1) : least)
    }
    if (Math.min(...row) > most) return Number.POSITIVE_INFINITY
    earlier = last
    last = row
  }
  return cell(last, b.length)
}

function cell(row: readonly number[], at: number): number {
  return row[at] ?? 0
}
