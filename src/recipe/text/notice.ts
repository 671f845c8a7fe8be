import { RecipeError } from '../../base/error.ts'

/** Something found in a file. An `error` refuses the file; the others are there to be shown. */
export interface Notice {
  readonly level: 'error' | 'warning' | 'note'
  /** What kind of finding it is, for programs. */
  readonly code: NoticeCode
  readonly message: string
  readonly file: string
  /** Counted from 1; null where the finding is about the whole file. */
  readonly line: number | null
  /** What can be done about it. */
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

export interface Finding {
  readonly code: NoticeCode
  readonly message: string
  readonly line?: number | null
  readonly hint?: string
}

/** Collects what is found in one file, so that a person sees all of it at once. */
export class Report {
  readonly file: string
  /** A lenient reader goes on where a strict one refuses. */
  readonly isLenient: boolean
  readonly notices: Notice[] = []

  constructor(file: string, isLenient: boolean) {
    this.file = file
    this.isLenient = isLenient
  }

  error(finding: Finding): void {
    this.add('error', finding)
  }

  /** An error for the strict, a warning for the lenient. */
  fault(finding: Finding): void {
    this.add(this.isLenient ? 'warning' : 'error', finding)
  }

  warning(finding: Finding): void {
    this.add('warning', finding)
  }

  note(finding: Finding): void {
    this.add('note', finding)
  }

  /** Throws when something was found that refuses the file. */
  check(): void {
    const errors = this.notices.filter(({ level }) => level === 'error')
    if (errors.length > 0) throw refuseAll(errors)
  }

  private add(level: Notice['level'], { code, message, line = null, hint }: Finding): void {
    if (this.notices.length >= (level === 'error' ? MOST_WITH_ERRORS : MOST)) return
    this.notices.push({ level, code, message, file: this.file, line, hint: hint ?? null })
  }
}

/** More than anybody reads; a hostile file must not make more of it. */
const MOST = 200
/** What refuses a file is told whatever came before it. */
const MOST_WITH_ERRORS = 2 * MOST

/** One error of a file, thrown: its message says where, what, and what to do; `details` has the parts. */
export function refuse(finding: Finding, file: string): RecipeError {
  const { code, message, line = null, hint } = finding
  return refuseAll([{ level: 'error', code, message, file, line, hint: hint ?? null }])
}

/** `file:line: message hint`, as compilers write it. */
export function noticeText({ file, line, message, hint }: Omit<Notice, 'level' | 'code'>): string {
  const place = line === null ? file : `${file}:${line}`
  if (hint === null) return `${place}: ${message}`
  return `${place}: ${/[.!?]$/.test(message) ? message : `${message}.`} ${hint}`
}

/** The findings that a thrown error carries. */
export function noticesOf(error: unknown): readonly Notice[] {
  if (!RecipeError.isInstance(error)) return []
  const { notices } = error.details
  return Array.isArray(notices) ? (notices as Notice[]) : []
}

/** All errors of a file at once. */
export function refuseAll(errors: readonly Notice[]): RecipeError {
  const [first] = errors
  if (first === undefined) throw new TypeError('a refusal needs a reason')
  const others = errors.length > 1 ? ` (and ${errors.length - 1} more)` : ''
  const { code, message, file, line, hint } = first
  return new RecipeError('recipe', `${noticeText(first)}${others}`, {
    details: { problem: message, kind: code, file, line, hint, notices: errors },
  })
}
