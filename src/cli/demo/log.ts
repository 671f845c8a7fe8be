import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/** One call of a model or a tool that really began, as its own code wrote it down: the store has no part in it. */
export interface Execution {
  readonly pid: number
  readonly key: string
}

export type Note = (key: string) => void

/** A model is not told its node: whose call it is and how many answers came before name it just as well. */
export function modelKey(path: readonly string[], answersBefore: number): string {
  return `model ${path.join('/')} ${answersBefore}`
}

export function toolKey(nodeId: string): string {
  return `tool ${nodeId}`
}

export function noteIn(file: string): Note {
  return (key) => appendFileSync(file, `${process.pid}\t${key}\n`)
}

export function readExecutions(file: string): Execution[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => {
    const [pid = '', key = ''] = line.split('\t')
    return { pid: Number(pid), key }
  })
}
