import type { AnswerLine, CodeLine, RunLine, SourceLine } from './lines.ts'
import { type PlainRequest, unpackRequest } from './packed-request.ts'
import type { Played } from './playing-order.ts'
import type { ReadRecording } from './recording-file.ts'

export interface Entry extends Played {
  readonly line: AnswerLine | CodeLine
  /** Of a model's answer, whole. */
  readonly request: PlainRequest | null
  /** In the file. */
  readonly number: number
}

export interface RecordedScript {
  readonly runs: readonly RunLine[]
  readonly entries: readonly Entry[]
  readonly sources: readonly { readonly line: SourceLine; readonly number: number }[]
}

/** A recording as it is played: what was said twice, because a process was lost in between, counts the second time. */
export function recordedScript({ lines }: ReadRecording): RecordedScript {
  const runs = lines.flatMap(({ line }) => ('run' in line ? [line] : []))
  const sources = lines.flatMap(({ line, number }) => ('source' in line ? [{ line, number }] : []))
  const requests = new Map<string, PlainRequest>()
  const found = new Map<string, Omit<Entry, 'index'>>()
  for (const { line, number } of lines) {
    if (!('at' in line)) continue
    const request = 'request' in line ? unpackRequest(line.request, requests.get(line.request.after ?? '')) : null
    if (request !== null) requests.set(line.at, request)
    const isOpenEnded = 'stopped' in line || ('result' in line && isCancelled(line.result))
    found.delete(line.at)
    found.set(line.at, {
      at: line.at,
      run: runOf(runs, line.at),
      isOpenEnded,
      isAsked: false,
      isOver: false,
      line,
      request,
      number,
    })
  }
  return { runs, sources, entries: [...found.values()].map((entry, index) => ({ ...entry, index })) }
}

function isCancelled(result: CodeLine['result']): boolean {
  return 'stopped' in result && result.stopped === 'cancel'
}

function runOf(runs: readonly RunLine[], at: string): string {
  const own = runs.filter(({ run }) => at.startsWith(run) && '.+@'.includes(at[run.length] ?? '')).map(({ run }) => run)
  return own.toSorted((a, b) => b.length - a.length)[0] ?? ''
}
