import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, extname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ModelRequest } from '../../doors/models.ts'
import { type Agent, agent, type Tool, type ToolContext, tool } from '../../index.ts'
import { type ScriptedAnswer, type ScriptedModel, scriptedModel } from '../../testing/index.ts'
import { modelKey, type Note, toolKey } from './view.ts'

export const QUESTION = 'What is in this package?'

const FOLDERS = 3
const MODEL_MS = 400
const TOOL_MS = 200
const SLOW_TOOL_MS = 350
const NO_INPUT = { type: 'object', properties: {}, additionalProperties: false } as const
const FOLDER = {
  type: 'object',
  properties: { folder: { type: 'string' } },
  required: ['folder'],
  additionalProperties: false,
} as const
const TASK = {
  type: 'object',
  properties: { folders: { type: 'array', items: { type: 'string' }, minItems: 1 } },
  required: ['folders'],
  additionalProperties: false,
} as const

/**
 * Makes a lead with three subagents. The models follow the script here; the tools really read the files below `root`.
 */
export function demoAgents(root: string, note: Note): Agent<string, null> {
  const folders = foldersOf(root, FOLDERS)
  const of = (script: (results: readonly string[]) => ScriptedAnswer) => notingModel(note, script)
  const surveyor = agent({
    name: 'surveyor',
    description: 'Says how many files there are.',
    instructions: 'You survey a package.',
    model: of(([counted]) => (counted === undefined ? { calls: [{ name: 'count_files', input: {} }] } : counted)),
    tools: { count_files: countFiles(root, folders, note) },
    input: TASK,
  })
  const counter = agent({
    name: 'counter',
    description: 'Counts lines.',
    instructions: 'You count lines, one folder at a time.',
    model: of(
      (results) =>
        eachFolder('count_lines', folders, results) ?? `${total(results.map(Number.parseFloat))} lines in all`,
    ),
    tools: { count_lines: countLines(root, note) },
    input: TASK,
  })
  const scout = agent({
    name: 'scout',
    description: 'Finds the longest file.',
    instructions: 'You look for the longest file, one folder at a time.',
    model: of((results) => eachFolder('longest_file', folders, results) ?? `the longest file is ${longestOf(results)}`),
    tools: { longest_file: longestFile(root, note) },
    input: TASK,
  })
  return agent({
    name: 'lead',
    instructions: 'You describe a package. Delegate what you can.',
    model: of((results) => {
      if (results.length > 0) return `In ${folders.join(', ')}: ${results.join('; ')}.`
      return { calls: ['survey', 'count', 'search'].map((name) => ({ name, input: { folders } })) }
    }),
    subagents: { survey: surveyor, count: counter, search: scout },
  })
}

/** Makes a scripted model that logs each call before it answers, slowly enough for a person to watch. */
function notingModel(note: Note, script: (results: readonly string[]) => ScriptedAnswer): ScriptedModel {
  return scriptedModel((request) => {
    note(modelKey(request.path, request.messages.filter(({ role }) => role === 'assistant').length))
    const turn = script(resultsIn(request))
    return { ...(typeof turn === 'string' ? { text: turn } : turn), delayMs: MODEL_MS }
  }, 'scripted/demo')
}

function resultsIn({ messages }: ModelRequest): string[] {
  return messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
}

/** Asks for the next folder until all have a result. */
function eachFolder(name: string, folders: readonly string[], results: readonly string[]): ScriptedAnswer | undefined {
  const folder = folders[results.length]
  return folder === undefined ? undefined : { calls: [{ name, input: { folder } }] }
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

function longestOf(results: readonly string[]): string {
  const lines = (result: string) => Number(result.split(', ')[1]?.split(' ')[0])
  return results.toSorted((a, b) => lines(b) - lines(a))[0] ?? ''
}

function countFiles(root: string, folders: readonly string[], note: Note): Tool {
  return tool({
    description: 'How many text files there are in each folder.',
    input: NO_INPUT,
    effect: 'pure',
    execute: async (_, context) => {
      await slowly(note, context, TOOL_MS)
      return `${total(folders.map((folder) => textFiles(join(root, folder)).length))} files`
    },
  }) as Tool
}

function countLines(root: string, note: Note): Tool {
  return tool({
    description: 'How many lines of text there are in a folder.',
    input: FOLDER,
    effect: 'pure',
    execute: async (input, context) => {
      await slowly(note, context, TOOL_MS)
      return `${total(textFiles(join(root, folderIn(input))).map(lineCount))} lines`
    },
  }) as Tool
}

function longestFile(root: string, note: Note): Tool {
  return tool({
    description: 'The file of a folder with the most lines.',
    input: FOLDER,
    effect: 'pure',
    execute: async (input, context) => {
      await slowly(note, context, SLOW_TOOL_MS)
      const files = textFiles(join(root, folderIn(input))).map((file) => ({ file, lines: lineCount(file) }))
      const [longest] = files.sort((a, b) => b.lines - a.lines)
      return longest === undefined ? 'no file, 0 lines' : `${relative(root, longest.file)}, ${longest.lines} lines`
    },
  }) as Tool
}

/** Logs the call before it has any effect, then waits a moment. */
async function slowly(note: Note, { node, signal }: ToolContext, ms: number): Promise<void> {
  note(toolKey(node.id))
  await sleep(ms, undefined, { signal })
}

function folderIn(input: unknown): string {
  return String((input as { folder: unknown }).folder)
}

const TEXT: ReadonlySet<string> = new Set(['.ts', '.js', '.mjs', '.md'])
const MOST_FILES = 5_000

/**
 * Picks the first folders of a package that are worth a look; an installed package has other folders than its
 * repository.
 */
function foldersOf(root: string, most: number): string[] {
  return ['src', 'test', 'examples', 'docs', 'dist'].filter((folder) => existsSync(join(root, folder))).slice(0, most)
}

function textFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => TEXT.has(extname(file)))
    .slice(0, MOST_FILES)
    .map((file) => join(folder, file))
}

/** Counts the lines of a file; 0 if the file has disappeared since it was listed. */
function lineCount(file: string): number {
  try {
    return readFileSync(file, 'utf8').split('\n').length - 1
  } catch {
    return 0
  }
}

/** Finds the package folder of a file, however deep the build has put it. */
export function packageRoot(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : packageRoot(dirname(folder))
}
