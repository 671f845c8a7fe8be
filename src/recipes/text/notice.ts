// Findings about a file: errors, warnings and notes with file, line and advice.
//
// Owns: the codes of findings, the report that collects them, and their form as text and as RecipeError.
// Called by: everything that reads a recipe or an agent file.
//
// Must stay true:
// - One pass reports all problems of a file, not only the first.
// - An `error` refuses the file. Other levels never change whether it can be used.
// - A hostile file cannot produce more than a bounded number of findings.

import { RecipeError } from '../../core/base/error.ts'

/** A finding about a file. An `error` refuses the file; the other levels only inform. */
export interface Notice {
  readonly level: 'error' | 'warning' | 'note'
  /** The kind of finding, for programs. */
  readonly code: NoticeCode
  readonly message: string
  readonly file: string
  /** Counted from 1; null if the finding is about the whole file. */
  readonly line: number | null
  /** Advice on how to fix it. */
  readonly hint: string | null
}

export type NoticeCode =
  | 'unreadable'
  | 'syntax'
  | 'too_large'
  | 'missing_field'
  | 'invalid_value'
  | 'unknown_key'
  | 'parameter'
  | 'missing_parameters'
  | 'template'
  | 'include'
  | 'schema'
  | 'retry'
  | 'extension'
  | 'sub_recipe'
  | 'harmful'
  | 'model'
  | 'tool'
  | 'permission'
  | 'ignored'
  | 'repaired'
  | 'shadowed'
  | 'ambiguous'
  | 'not_found'
  | 'lost'
  | 'disabled'
  | 'unmet'
  | 'runtime_file'

export interface NoticeParts {
  readonly code: NoticeCode
  readonly message: string
  readonly line?: number | null
  readonly hint?: string
}

/** Collects the findings of one file, so that a person sees all of them at once. */
export class NoticeReport {
  readonly file: string
  /** Whether reading continues where a strict reader refuses. */
  readonly isLenient: boolean
  readonly notices: Notice[] = []

  constructor(file: string, isLenient: boolean) {
    this.file = file
    this.isLenient = isLenient
  }

  error(finding: NoticeParts): void {
    this.add('error', finding)
  }

  /** Adds an error, or a warning if the reader is lenient. */
  fault(finding: NoticeParts): void {
    this.add(this.isLenient ? 'warning' : 'error', finding)
  }

  warning(finding: NoticeParts): void {
    this.add('warning', finding)
  }

  note(finding: NoticeParts): void {
    this.add('note', finding)
  }

  /** Throws if a finding refuses the file. */
  check(): void {
    const errors = this.notices.filter(({ level }) => level === 'error')
    if (errors.length > 0) throw refuseAll(errors)
  }

  private add(level: Notice['level'], { code, message, line = null, hint }: NoticeParts): void {
    if (this.notices.length >= (level === 'error' ? MOST_WITH_ERRORS : MOST)) return
    this.notices.push({ level, code, message, file: this.file, line, hint: hint ?? null })
  }
}

/** More than anybody reads; a hostile file must not produce more. */
const MOST = 200
/** Errors are kept beyond the limit, because they refuse the file. */
const MOST_WITH_ERRORS = 2 * MOST

/** Makes an error to throw for one finding: the message says where, what, and what to do; `details` has the parts. */
export function refuseFile(finding: NoticeParts, file: string): RecipeError {
  const { code, message, line = null, hint } = finding
  return refuseAll([{ level: 'error', code, message, file, line, hint: hint ?? null }])
}

/** Formats a finding as compilers do: `file:line: message hint`. */
export function noticeText({ file, line, message, hint }: Omit<Notice, 'level' | 'code'>): string {
  const place = line === null ? file : `${file}:${line}`
  if (hint === null) return `${place}: ${message}`
  return `${place}: ${/[.!?]$/.test(message) ? message : `${message}.`} ${hint}`
}

/** Reads the findings that an error carries. */
export function noticesOf(error: unknown): readonly Notice[] {
  if (!RecipeError.isInstance(error)) return []
  const { notices } = error.details
  return Array.isArray(notices) ? (notices as Notice[]) : []
}

/** Makes one error of all errors of a file. */
export function refuseAll(errors: readonly Notice[]): RecipeError {
  const [first] = errors
  if (first === undefined) throw new TypeError('a refusal needs a reason')
  const others = errors.length > 1 ? ` (and ${errors.length - 1} more)` : ''
  const { code, message, file, line, hint } = first
  return new RecipeError('recipe', `${noticeText(first)}${others}`, {
    details: { problem: message, kind: code, file, line, hint, notices: errors },
  })
}
