// Renders the templates of recipes with minijinja (WebAssembly), in bounded time and memory.
//
// Owns: the engine, the thread for risky templates, and the translation of engine errors into file and line.
// Called by: `recipe/recipe-source`, which holds values back (`hold.ts`) so that they stay data.
//
// Must stay true:
// - Rendering ends: steps (fuel), time (a thread that is stopped), memory (128 MB) and output are limited.
// - After a panic the engine is never used again; the next call loads a new one.
// - `renderBatch` and `boundMemory` also run as source text in the thread: they must not use anything from this file.

import { randomInt } from 'node:crypto'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import type { Environment } from 'minijinja-js'
import { loadBeside } from '../../core/base/package/beside.ts'
import { Releaser } from './hold.ts'
import { Lines, segmentsOf, type Token, tagName, templateTokens } from './tags.ts'

/** How long a thread may render, and how long it may take to start on a busy machine. */
const RENDER_MS = 400
const START_MS = 10_000
const FUEL = 200_000
const THREAD_FUEL = 5_000_000
const MOST_CHARACTERS = 4_000_000

export type RenderRequest = Omit<RenderJob, 'fuel' | 'mostCharacters' | 'mark'>

/** The error of a template, and its line. */
export interface TemplateTrouble {
  readonly message: string
  /** The index of the text. */
  readonly index: number
  /** The included template with the error; null for the text itself. */
  readonly template: string | null
  readonly line: number | null
}

export type RenderAnswer =
  | { readonly ok: true; readonly texts: readonly string[]; readonly releaser: Releaser }
  | { readonly ok: false; readonly trouble: TemplateTrouble }

/** Renders texts in bounded time: a template that could take long runs in a thread that is stopped at the limit. */
export async function render(request: RenderRequest): Promise<RenderAnswer> {
  const templates = [...request.texts, ...Object.values(request.templates)]
  const index = request.texts.findIndex((text) => repetitionLine(text) !== undefined)
  if (templates.some((text) => repetitionLine(text) !== undefined)) {
    return { ok: false, trouble: { message: 'too much text', index: Math.max(0, index), template: null, line: null } }
  }
  const isLong = templates.some(isRisky) || givenTo(request) > MOST_GIVEN
  const mark = String(randomInt(2 ** 47))
  const job: RenderJob = { ...request, mark, fuel: isLong ? THREAD_FUEL : FUEL, mostCharacters: MOST_CHARACTERS }
  const answer = isLong ? await renderInThread(job) : renderHere(job)
  if (answer.ok) return { ok: true, texts: answer.texts, releaser: new Releaser(answer.held, mark) }
  return { ok: false, trouble: readTrouble(answer) }
}

/** Counts the characters the engine receives for all texts together: all values for each. */
function givenTo({ texts, values }: RenderRequest): number {
  const all = Object.entries(values)
  return texts.length * all.reduce((sum, [name, value]) => sum + name.length + value.length + VALUE_COST, 0)
}

/** The most characters. Passing a value costs as much as this many. */
const MOST_GIVEN = 5_000_000
const VALUE_COST = 100

/** Tells whether this is a valid inside of `{{ }}`. Runs nothing. */
export function isExpression(inner: string): boolean {
  if (/[{}]{2}|%\}|#\}/.test(inner)) return parses(`{{ ${inner} }}`)
  const known = expressions.get(inner)
  if (known !== undefined) return known
  const answer = parses(`{{ ${inner} }}`)
  if (expressions.size >= 1_000) expressions.clear()
  expressions.set(inner, answer)
  return answer
}

/** Finds the first syntax error of a template; undefined if there is none. Runs nothing. */
export function syntaxTrouble(template: string): TemplateTrouble | undefined {
  const repeated = repetitionLine(template)
  if (repeated !== undefined) return { message: 'too much text', index: 0, template: null, line: repeated }
  if (isPlain(template)) return undefined
  try {
    checker ??= new (engine().Environment)()
    checker.addTemplate('t', template)
    return undefined
  } catch (error) {
    // Errors of the template are an Error; after a panic or a stack overflow the engine is broken.
    if (error instanceof Error && error.name !== 'Error') forgetEngine()
    return readTrouble({ message: String(error instanceof Error ? error.message : error), index: 0 })
  }
}

/** Recognizes templates of text and names only, which need no check by the engine. */
function isPlain(template: string): boolean {
  return segmentsOf(template).every(({ kind, inner }) => {
    if (kind === 'text') return !/\{[{%#]/.test(inner)
    return kind === 'comment' || (kind === 'variable' && /^[A-Za-z_]\w*$/.test(inner))
  })
}

/** The engine that parses templates and renders none; kept because there are many. */
let checker: InstanceType<Engine['Environment']> | undefined

const expressions = new Map<string, boolean>()

function parses(template: string): boolean {
  if (repetitionLine(template) !== undefined) return true
  return syntaxTrouble(template) === undefined
}

type Engine = typeof import('minijinja-js')

const require = createRequire(import.meta.url)
let loaded: Engine | undefined

function engine(): Engine {
  loaded ??= loadBeside(require, 'minijinja-js') as Engine
  return loaded
}

/** Drops the engine after a panic; the next use loads it again. */
function forgetEngine(): void {
  loaded = undefined
  checker = undefined
  delete require.cache[require.resolve('minijinja-js')]
}

function renderHere(job: RenderJob): RenderResult {
  try {
    return renderBatch(engine(), job)
  } catch (error) {
    forgetEngine()
    return { ok: false, message: `the template engine failed: ${String(error)}`, index: 0 }
  }
}

/** 128 MB: the engine itself stops a template that needs more. */
const PAGES = 2_048

const THREAD = `
const { parentPort, workerData } = require('node:worker_threads')
const boundMemory = ${boundMemory.toString()}
const { Module } = WebAssembly
WebAssembly.Module = function (bytes) { return new Module(boundMemory(new Uint8Array(bytes), ${PAGES})) }
const engine = require(workerData.engine)
const renderBatch = ${renderBatch.toString()}
parentPort.postMessage('ready')
parentPort.postMessage(renderBatch(engine, workerData.job))
`

async function renderInThread(job: RenderJob): Promise<RenderResult> {
  const worker = new Worker(THREAD, {
    eval: true,
    workerData: { engine: require.resolve('minijinja-js'), job },
    resourceLimits: { maxOldGenerationSizeMb: 256 },
    stdout: true,
    stderr: true,
  })
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<RenderResult>((resolve) => {
      const stop = (message: string) => resolve({ ok: false, message, index: 0 })
      timer = setTimeout(stop, START_MS, 'the template engine does not start')
      worker.on('message', (message: 'ready' | RenderResult) => {
        if (message !== 'ready') return resolve(message)
        clearTimeout(timer)
        timer = setTimeout(stop, RENDER_MS, `rendering did not end within ${RENDER_MS} ms`)
      })
      worker.on('error', (error) => stop(`the template engine failed: ${error.message}`))
      worker.on('exit', () => stop('the template engine failed'))
    })
  } finally {
    clearTimeout(timer)
    await worker.terminate()
  }
}

/** Parses the engine's message, such as `undefined value (in sub/part.yaml:3)` with an excerpt. */
function readTrouble({ message, index }: { message: string; index: number }): TemplateTrouble {
  const [first = ''] = message.split('\n', 1)
  const [, what = first, name, line] = /^(.*?)(?: \(in (.*):(\d+)\))?$/.exec(first) ?? []
  const isOwn = name === undefined || name === '<string>' || name === 't'
  return { message: what, index, template: isOwn ? null : name, line: line === undefined ? null : Number(line) }
}

/** Texts to render with the same values. Plain data, so that it can go to another thread. */
export interface RenderJob {
  readonly texts: readonly string[]
  /** The templates that the texts may include, by name. */
  readonly templates: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, string>>
  /** `strict`: a name without a value is an error. `chainable`: it is empty. */
  readonly undefinedBehavior: 'strict' | 'chainable'
  /** Digits no value can guess, part of the marks of held values. */
  readonly mark: string
  /** The most steps of the engine for all texts. */
  readonly fuel: number
  readonly mostCharacters: number
}

export type RenderResult =
  | { readonly ok: true; readonly texts: readonly string[]; readonly held: readonly string[] }
  | { readonly ok: false; readonly message: string; readonly index: number }

/**
 * Renders all texts, or reports which one failed. The filter `legate_hold` stores its value and writes a mark in its
 * place: private characters that no filter changes. A thread also runs the source of this function by itself: it may
 * use nothing from around it, and the filter must not throw, because that would break the engine.
 */
function renderBatch(engine: { readonly Environment: typeof Environment }, job: RenderJob): RenderResult {
  const held: string[] = []
  const texts: string[] = []
  const environment = new engine.Environment()
  let undefinedAt = -1
  try {
    environment.undefinedBehavior = job.undefinedBehavior
    environment.keepTrailingNewline = true
    environment.fuel = job.fuel
    environment.addFilter('legate_hold', (value: unknown, isUndefined: unknown) => {
      if (isUndefined === true && undefinedAt === -1) undefinedAt = held.length
      held.push(String(value))
      return `\ue0f0${job.mark}:${held.length - 1}\ue0f1`
    })
    for (const [name, template] of Object.entries(job.templates)) {
      environment.addTemplate(name, `{% autoescape false %}${template}{% endautoescape %}`)
    }
    let characters = 0
    for (const text of job.texts) {
      const rendered = environment.renderStr(text, job.values)
      characters += rendered.length
      if (characters > job.mostCharacters) return { ok: false, message: 'too much text', index: texts.length }
      if (undefinedAt !== -1 && job.undefinedBehavior === 'strict') {
        return { ok: false, message: 'undefined value', index: texts.length }
      }
      texts.push(rendered)
    }
    return { ok: true, texts, held }
  } catch (error) {
    if (error instanceof Error && error.name !== 'Error') throw error
    return { ok: false, message: String(error instanceof Error ? error.message : error), index: texts.length }
  } finally {
    try {
      environment.free()
    } catch {
      // A broken engine cannot even be freed; it is dropped as a whole.
    }
  }
}

/**
 * Tells whether rendering could take long or produce much more text than its values. Conditions and plain values
 * cannot. A risky template is rendered in a thread that can be stopped.
 */
export function isRisky(template: string): boolean {
  return segmentsOf(template).some((segment) => {
    if (segment.kind === 'tag' && !HARMLESS_TAGS.has(tagName(segment))) return true
    return (segment.kind === 'tag' || segment.kind === 'variable') && hasRisk(templateTokens(segment.inner))
  })
}

const HARMLESS_TAGS: ReadonlySet<string> = new Set(['if', 'elif', 'else', 'endif'])
/** Filters whose output is about as long as their input. */
const HARMLESS_FILTERS: ReadonlySet<string> = new Set(
  'upper lower title capitalize trim default d length count first last string int float bool indent escape e safe legate_hold'.split(
    ' ',
  ),
)

function hasRisk(tokens: readonly Token[]): boolean {
  return tokens.some(({ kind, text }, at) => {
    if (kind === 'sign') return ['*', '**', '+', '~', '%', '['].includes(text) || (text === '(' && isCall(tokens, at))
    if (kind === 'number') return text.length > 3
    return tokens[at - 1]?.text === '|' && !HARMLESS_FILTERS.has(text)
  })
}

/** A bracket after a name is a call, unless the name is a filter. */
function isCall(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1]
  if (before?.kind !== 'name' || ['and', 'or', 'not', 'in', 'if', 'elif', 'else'].includes(before.text)) return false
  return tokens[at - 2]?.text !== '|'
}

/**
 * Finds the line of an expression that repeats a literal text very often, such as `"a" * 2000000000`: the engine
 * evaluates it while parsing, before anybody can stop it. A line of dashes is harmless.
 */
export function repetitionLine(template: string): number | undefined {
  if (!template.includes('*')) return undefined
  const found = segmentsOf(template).find(({ kind, inner }) => {
    return (kind === 'variable' || kind === 'tag') && inner.includes('*') && repeats(templateTokens(inner))
  })
  return found === undefined ? undefined : new Lines(template).at(found.start)
}

const LONGEST = 1_000

function repeats(tokens: readonly Token[]): boolean {
  const stars = tokens.filter(({ kind, text }) => kind === 'sign' && (text === '*' || text === '**'))
  const isOfTexts = tokens.some(({ kind, text }) => kind === 'string' || text === '[')
  if (stars.length === 0 || !isOfTexts) return false
  const isLong = tokens.some(({ kind, text }) => {
    return kind === 'number' ? Number(text.replaceAll('_', '')) > LONGEST : kind === 'string' && text.length > LONGEST
  })
  return stars.length > 1 || isLong
}

/**
 * Limits a WebAssembly module to so many pages of memory, 64 KB each. Returns bytes it does not understand unchanged. A
 * thread also runs the source of this function by itself: it may use nothing from around it.
 */
export function boundMemory(bytes: Uint8Array, pages: number): Uint8Array {
  let at = 8
  const readNumber = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] ?? 0
      value += (byte & 127) * 2 ** shift
      if (byte < 128) return value
    }
  }
  const numberBytes = (value: number): number[] => {
    const written: number[] = []
    for (let rest = value; ; rest = Math.floor(rest / 128)) {
      written.push(rest < 128 ? rest : (rest % 128) + 128)
      if (rest < 128) return written
    }
  }
  while (at < bytes.length) {
    const start = at
    const section = bytes[at++]
    const size = readNumber()
    const end = at + size
    if (section === 5) {
      const count = readNumber()
      const flags = readNumber()
      const least = readNumber()
      if (count !== 1 || flags > 1) return bytes
      const body = [1, 1, ...numberBytes(least), ...numberBytes(Math.max(least, pages))]
      const own = Uint8Array.from([5, ...numberBytes(body.length), ...body])
      const bounded = new Uint8Array(start + own.length + bytes.length - end)
      bounded.set(bytes.subarray(0, start))
      bounded.set(own, start)
      bounded.set(bytes.subarray(end), start + own.length)
      return bounded
    }
    at = end
  }
  return bytes
}
