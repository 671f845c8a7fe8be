import { RecipeError } from '../../base/error.ts'
import type { Place } from './tree.ts'

export interface Trouble {
  /** What is wrong. */
  readonly problem: string
  readonly file: string
  readonly at?: Place
  /** What can be done about it. */
  readonly hint?: string
  readonly cause?: unknown
}

/** What is wrong with a prompt file, where and what to do: `file:line:column: problem hint`; `details` has the parts. */
export function fileError({ problem, file, at, hint, cause }: Trouble): RecipeError {
  const place = at === undefined ? file : `${file}:${at.line}:${at.column}`
  const sentence = /[.!?]$/.test(problem) ? problem : `${problem}.`
  return new RecipeError('recipe', [`${place}: ${sentence}`, hint].filter(Boolean).join(' '), {
    details: { problem, file, line: at?.line ?? null, column: at?.column ?? null, hint: hint ?? null },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** Something wrong at a place of the text in hand; who reads the file adds its name. */
export class Wrong extends Error {
  readonly at: Place
  readonly hint: string | undefined

  constructor(problem: string, at: Place, hint?: string) {
    super(problem)
    this.at = at
    this.hint = hint
  }
}
