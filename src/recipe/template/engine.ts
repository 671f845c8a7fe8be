import { randomInt } from 'node:crypto'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { type Job, type Rendered, renderBatch } from './batch.ts'
import { boundMemory } from './bound-memory.ts'
import { Releaser } from './hold.ts'
import { repetitionLine } from './repetition.ts'
import { isRisky } from './risk.ts'
import { segmentsOf } from './tags.ts'

/** How long a thread may render, and how long it may take to start on a busy machine. */
const RENDER_MS = 400
const START_MS = 10_000
const FUEL = 200_000
const THREAD_FUEL = 5_000_000
const MOST_CHARACTERS = 4_000_000

export type RenderRequest = Omit<Job, 'fuel' | 'mostCharacters' | 'mark'>

/** What is wrong with a template, and on which of its lines. */
export interface TemplateTrouble {
  readonly message: string
  /** Which of the texts. */
  readonly index: number
  /** The included template it is in; null for the text itself. */
  readonly template: string | null
  readonly line: number | null
}

export type RenderAnswer =
  | { readonly ok: true; readonly texts: readonly string[]; readonly releaser: Releaser }
  | { readonly ok: false; readonly trouble: TemplateTrouble }

/** Renders texts in bounded time: a template that could take long gets a thread that is ended when it does. */
export async function render(request: RenderRequest): Promise<RenderAnswer> {
  const templates = [...request.texts, ...Object.values(request.templates)]
  const index = request.texts.findIndex((text) => repetitionLine(text) !== undefined)
  if (templates.some((text) => repetitionLine(text) !== undefined)) {
    return { ok: false, trouble: { message: 'too much text', index: Math.max(0, index), template: null, line: null } }
  }
  const isLong = templates.some(isRisky) || givenTo(request) > MOST_GIVEN
  const mark = String(randomInt(2 ** 47))
  const job: Job = { ...request, mark, fuel: isLong ? THREAD_FUEL : FUEL, mostCharacters: MOST_CHARACTERS }
  const answer = isLong ? await renderInThread(job) : renderHere(job)
  if (answer.ok) return { ok: true, texts: answer.texts, releaser: new Releaser(answer.held, mark) }
  return { ok: false, trouble: readTrouble(answer) }
}

/** What the engine is given for all texts together: all values for each. */
function givenTo({ texts, values }: RenderRequest): number {
  const all = Object.entries(values)
  return texts.length * all.reduce((sum, [name, value]) => sum + name.length + value.length + VALUE_COST, 0)
}

/** Characters; to hand a value over takes as long as so many. */
const MOST_GIVEN = 5_000_000
const VALUE_COST = 100

/** Is this the inside of `{{ }}`? Nothing is run. */
export function isExpression(inner: string): boolean {
  if (/[{}]{2}|%\}|#\}/.test(inner)) return parses(`{{ ${inner} }}`)
  const known = expressions.get(inner)
  if (known !== undefined) return known
  const answer = parses(`{{ ${inner} }}`)
  if (expressions.size >= 1_000) expressions.clear()
  expressions.set(inner, answer)
  return answer
}

/** The first thing that the engine cannot read in a template; undefined when it can read all. Nothing is run. */
export function syntaxTrouble(template: string): TemplateTrouble | undefined {
  const repeated = repetitionLine(template)
  if (repeated !== undefined) return { message: 'too much text', index: 0, template: null, line: repeated }
  if (isPlain(template)) return undefined
  try {
    checker ??= new (engine().Environment)()
    checker.addTemplate('t', template)
    return undefined
  } catch (error) {
    // What the engine says itself is an Error; after a panic or an overflow of its stack it is broken.
    if (error instanceof Error && error.name !== 'Error') forgetEngine()
    return readTrouble({ message: String(error instanceof Error ? error.message : error), index: 0 })
  }
}

/** Nothing but text and names: the engine can read that, without being asked. */
function isPlain(template: string): boolean {
  return segmentsOf(template).every(({ kind, inner }) => {
    if (kind === 'text') return !/\{[{%#]/.test(inner)
    return kind === 'comment' || (kind === 'variable' && /^[A-Za-z_]\w*$/.test(inner))
  })
}

/** Reads templates and renders none; kept, for there are many to read. */
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
  loaded ??= require('minijinja-js') as Engine
  return loaded
}

/** After a panic it is not to be used again; the next use loads it anew. */
function forgetEngine(): void {
  loaded = undefined
  checker = undefined
  delete require.cache[require.resolve('minijinja-js')]
}

function renderHere(job: Job): Rendered {
  try {
    return renderBatch(engine(), job)
  } catch (error) {
    forgetEngine()
    return { ok: false, message: `the template engine failed: ${String(error)}`, index: 0 }
  }
}

/** 128 MB: a template that wants more is broken off by the engine itself. */
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

async function renderInThread(job: Job): Promise<Rendered> {
  const worker = new Worker(THREAD, {
    eval: true,
    workerData: { engine: require.resolve('minijinja-js'), job },
    resourceLimits: { maxOldGenerationSizeMb: 256 },
    stdout: true,
    stderr: true,
  })
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<Rendered>((resolve) => {
      const stop = (message: string) => resolve({ ok: false, message, index: 0 })
      timer = setTimeout(stop, START_MS, 'the template engine does not start')
      worker.on('message', (message: 'ready' | Rendered) => {
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

/** `undefined value (in sub/part.yaml:3)` and a picture of the place, as the engine writes it. */
function readTrouble({ message, index }: { message: string; index: number }): TemplateTrouble {
  const [first = ''] = message.split('\n', 1)
  const [, what = first, name, line] = /^(.*?)(?: \(in (.*):(\d+)\))?$/.exec(first) ?? []
  const isOwn = name === undefined || name === '<string>' || name === 't'
  return { message: what, index, template: isOwn ? null : name, line: line === undefined ? null : Number(line) }
}
