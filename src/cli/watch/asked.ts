import type { Id, Node } from '../../index.ts'
import { shortId } from '../find-run.ts'
import { oneLine } from '../terminal/clean.ts'
import { preview } from './words.ts'

const PREVIEW = 120

/** What a node does or wants to do: its call, or what a person is asked to allow it. */
export function callOf({ input, kind, metadata }: Node, columns: number = PREVIEW): string {
  if (input.call !== undefined) return `${oneLine(input.call.name)} ${preview(input.call.input, columns)}`
  const { approval } = metadata
  const request = typeof approval === 'object' && approval !== null ? Reflect.get(approval, 'request') : undefined
  return oneLine(typeof request === 'string' && request !== '' ? request : kind)
}

/** Which command answers a call that waits for a person. */
export function answersOf(nodeId: Id): string {
  const id = shortId(nodeId)
  return `legate approve ${id}, or legate deny ${id} --reason TEXT`
}
