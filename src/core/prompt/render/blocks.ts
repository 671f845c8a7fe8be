import { InputError } from '../../base/error.ts'
import { isRecord, type Json, type JsonRecord } from '../../base/json.ts'
import { shapeText } from '../shape/shape-text.ts'
import { inLine } from '../slots/placeholder.ts'
import { isEmpty, isSlot, type SlotLayer } from '../slots/slot.ts'
import type { Rendering } from './options.ts'
import type { Output } from './output.ts'
import { yamlText } from './yaml-text.ts'

/** One part of a prompt under a title. */
export interface TitledBlock {
  readonly title: string
  readonly text: string
}

/** A block for the slot, or none where it is empty. */
export function slotBlock(view: SlotLayer, slot: string, title: string): TitledBlock[] {
  const value = view.get(slot) as Json | undefined
  return value === undefined || isEmpty(value) ? [] : [{ title, text: blockText(slot, value) }]
}

/** The blocks that ask something of the model, in reading order. */
export function mainBlocks(
  view: SlotLayer,
  {
    output,
    rendering: { titles },
    withTools,
  }: {
    readonly output: Output
    readonly rendering: Rendering
    /** False where the model gets them as tools. */
    readonly withTools: boolean
  },
): TitledBlock[] {
  const extras = [...view.keys()].filter((key) => !isSlot(key))
  const { requirement } = output
  return [
    ...(withTools ? slotBlock(view, 'tools', titles.tools) : []),
    ...slotBlock(view, 'action_results', titles.action_results),
    ...slotBlock(view, 'info', titles.info),
    ...extras.flatMap((key) => slotBlock(view, key, key.replace(/\s+/g, ' '))),
    ...slotBlock(view, 'instruct', titles.instruct),
    ...slotBlock(view, 'examples', titles.examples),
    ...slotBlock(view, 'input', titles.input),
    ...(requirement.length === 0 ? [] : [{ title: titles.output_requirement, text: requirement.join('\n') }]),
  ]
}

function blockText(slot: string, value: Json): string {
  if (slot === 'info') return infoText(value)
  return slot === 'tools' ? toolsText(value) : dataText(value)
}

/** Texts stay as they are, numbers and the like become JSON, everything else YAML. */
export function dataText(value: Json): string {
  return typeof value === 'object' && value !== null ? yamlText(value) : inLine(value)
}

function infoText(value: Json): string {
  if (Array.isArray(value)) return value.map((item) => point(inLine(item))).join('\n')
  if (!isRecord(value)) return inLine(value)
  return Object.entries(value)
    .map(([key, item]) => point(`${key}: ${inLine(item)}`))
    .join('\n')
}

/** Indents the further lines of a point, so that they stay in it. */
function point(text: string): string {
  return `- ${text.replaceAll('\n', '\n  ')}`
}

function toolsText(value: Json): string {
  const tools = Array.isArray(value) ? value : [value]
  return tools.map((tool) => `[\n${fieldsText(tool as JsonRecord)}\n]`).join('\n')
}

function fieldsText(tool: JsonRecord): string {
  return Object.entries(tool)
    .map(([key, value]) => `${key}: ${key === 'kwargs' || key === 'returns' ? shapeText(value) : inLine(value)}`)
    .join('\n')
}

/** Thrown for a prompt that asks nothing of a model. */
export class EmptyPromptError extends InputError {
  static override readonly kind: string = 'EmptyPromptError'
}

const ASKING = ['input', 'info', 'instruct', 'output', 'attachment']

/** System, history, tools, examples and results alone ask nothing. */
export function checkAsksSomething(view: SlotLayer): void {
  if (ASKING.some((slot) => !isEmpty(view.get(slot)))) return
  if ([...view.keys()].some((key) => !isSlot(key))) return
  throw emptyPrompt(`none of ${ASKING.join(', ')} says anything, and there is no key of your own`)
}

export function emptyPrompt(why: string): EmptyPromptError {
  return new EmptyPromptError('invalid_input', `The prompt is empty: ${why}. Give it an input.`)
}

/**
 * Joins blocks under their titles, with a blank line between them; the answer follows the title `last`. A line of data
 * that looks like a title or like the start of somebody's turn gets a backslash, so that data cannot open a block.
 */
export function joinBlocks(blocks: readonly TitledBlock[], last: string, roles: readonly string[] = []): string {
  const guard = guardOf([...blocks.map(({ title }) => title), last], roles)
  const texts = blocks.map(({ title, text }) => `[${title}]:\n${guard(text)}\n`)
  return [...texts, `[${last}]:`].join('\n')
}

function guardOf(titles: readonly string[], roles: readonly string[]): (text: string) => string {
  const known = new Set([...titles.map((title) => `[${title}]`), ...roles].map(fold))
  return (text) => text.replace(/^.+$/gm, (line) => (known.has(fold(line)) ? line.replace(SEEN, '\\$&') : line))
}

/**
 * A line without the differences that a reader overlooks: invisible characters, space around it, the colon at its end,
 * capitals.
 */
function fold(text: string): string {
  const line = text.replace(UNSEEN, '')
  if (line.length > longestLine) return line
  let end = line.length
  while (/[\s:]/.test(line[end - 1] ?? '')) end--
  return line.slice(0, end).trim().toLowerCase()
}

const UNSEEN = /(?!\s)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu
const SEEN = /[^\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u
const longestLine = 1_000
