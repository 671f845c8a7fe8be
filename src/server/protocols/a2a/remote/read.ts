// Reads the answers of a remote agent before anything in them is used: they may be anything.

import { type Json, ToolError } from '../../../../index.ts'
import type { A2aArtifact, A2aMessage, A2aPart, A2aStatus, A2aTask } from '../wire.ts'

type Fields = Readonly<Record<string, unknown>>

/** A task; with an id, the very one that was asked for. */
export function readTask(value: unknown, id: string | null): A2aTask {
  const task = fieldsOf(value, 'a task')
  if (typeof task['id'] !== 'string' || task['id'] === '') throw malformed('a task without an id')
  if (id !== null && task['id'] !== id)
    throw new RemoteNonsense('The remote agent answered with another task than it was asked for.')
  return {
    ...(task as unknown as A2aTask),
    contextId: typeof task['contextId'] === 'string' ? task['contextId'] : '',
    status: readStatus(task['status']),
    artifacts: listOf(task['artifacts'], 'artifacts').map(readArtifact),
    history: listOf(task['history'], 'messages').map(readMessage),
  }
}

export function readMessage(value: unknown): A2aMessage {
  const message = fieldsOf(value, 'a message')
  return {
    ...(message as unknown as A2aMessage),
    messageId: String(message['messageId'] ?? ''),
    parts: readParts(message),
  }
}

/** One item of a stream. */
export interface RemoteUpdate {
  readonly task?: A2aTask
  readonly status?: A2aStatus
  readonly artifact?: A2aArtifact
  /** The artifact goes on from where it was. */
  readonly isMore: boolean
}

/** Undefined for an item that is about another task. */
export function readUpdate(value: Json, taskId: string | null): RemoteUpdate | undefined {
  const { task, statusUpdate, artifactUpdate } = fieldsOf(value, 'an update')
  const update = fieldsOf(statusUpdate ?? artifactUpdate ?? {}, 'an update')
  if ((task === undefined ? (update['taskId'] ?? taskId) : fieldsOf(task, 'a task')['id']) !== taskId) return undefined
  return {
    isMore: update['append'] === true,
    ...(task === undefined ? {} : { task: readTask(task, taskId) }),
    ...(statusUpdate === undefined ? {} : { status: readStatus(update['status']) }),
    ...(artifactUpdate === undefined ? {} : { artifact: readArtifact(update['artifact']) }),
  }
}

function readStatus(value: unknown): A2aStatus {
  const status = fieldsOf(value ?? {}, 'a status')
  const { state, message } = status
  if (typeof state !== 'string') throw malformed('a task without a state')
  const said = message === undefined || message === null ? {} : { message: readMessage(message) }
  const { message: _, ...rest } = status as unknown as A2aStatus
  return { ...rest, ...said }
}

function readArtifact(value: unknown): A2aArtifact {
  const artifact = fieldsOf(value, 'an artifact')
  return {
    ...(artifact as unknown as A2aArtifact),
    artifactId: String(artifact['artifactId'] ?? ''),
    parts: readParts(artifact),
  }
}

function readParts({ parts }: Fields): A2aPart[] {
  return listOf(parts, 'parts').map((one) => {
    const part = fieldsOf(one, 'a part')
    const wrong = TEXTS.find((name) => part[name] !== undefined && typeof part[name] !== 'string')
    if (wrong !== undefined) throw malformed(`a part whose "${wrong}" is not a text`)
    return part as A2aPart
  })
}

const TEXTS = ['text', 'raw', 'url', 'mediaType', 'filename']

function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformed(`${what} that is not an object`)
  return value as Fields
}

function listOf(value: unknown, what: string): readonly unknown[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw malformed(`${what} that are no list`)
  return value
}

/** The error for an answer that makes no sense. Asking once more would not help. */
export class RemoteNonsense extends ToolError {
  constructor(message: string) {
    super('tool', message)
  }
}

function malformed(what: string): RemoteNonsense {
  return new RemoteNonsense(`The remote agent sent ${what}.`)
}
