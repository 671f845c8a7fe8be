import { ownValue } from '../text/fields.ts'
import { Lines, type Segment, segmentsOf, type Token, tagName, templateTokens } from './tags.ts'

/** Finds names that a template uses and does not define, with the line of first use; `user.name` is one name. */
export function undeclaredVariables(template: string): Map<string, number> {
  const search = new Search(template)
  for (const segment of segmentsOf(template)) search.visit(segment)
  return search.found
}

/** Lists names that a template defines for everything after it: `set`, macros, imports. */
export function definedNames(template: string): Set<string> {
  const search = new Search(template)
  for (const segment of segmentsOf(template)) search.visit(segment)
  return search.scopes.outermost
}

/** Lists the names of an expression that are neither its own nor the engine's. */
export function namesIn(expression: string): string[] {
  return usesIn(templateTokens(expression)).filter((name) => !ALWAYS.has(root(name)))
}

const WORDS: ReadonlySet<string> = new Set(
  'and or not in is if else true false none True False None recursive'.split(' '),
)
/** Names that the engine defines. */
const ALWAYS: ReadonlySet<string> = new Set(
  'range dict namespace debug cycler joiner loop super self caller varargs kwargs'.split(' '),
)

class Search {
  readonly found = new Map<string, number>()
  readonly scopes = new Scopes()
  private readonly lines: Lines

  constructor(template: string) {
    this.lines = new Lines(template)
  }

  visit(segment: Segment): void {
    if (segment.kind === 'variable') this.use(templateTokens(segment.inner), segment)
    if (segment.kind === 'tag') this.statement(tagName(segment), segment)
  }

  private statement(name: string, segment: Segment): void {
    const tokens = templateTokens(segment.inner).slice(1)
    const visit = ownValue(this.statements, name)
    if (visit !== undefined) visit(tokens, segment)
    else if (CLOSERS.has(name)) this.scopes.close()
    else this.use(tokens, segment)
  }

  private readonly statements: Readonly<Record<string, (tokens: Token[], segment: Segment) => void>> = {
    for: (tokens, segment) => {
      const at = tokens.findIndex(({ text }) => text === 'in')
      const condition = tokens.findIndex(({ text }, index) => index > at && text === 'if')
      const end = condition === -1 ? tokens.length : condition
      this.use(tokens.slice(at + 1, end), segment)
      this.scopes.open(namesOf(tokens.slice(0, Math.max(0, at))))
      this.use(tokens.slice(end), segment)
    },
    set: (tokens, segment) => {
      const at = tokens.findIndex(({ text }) => text === '=')
      const targets = at === -1 ? tokens.slice(0, 1) : tokens.slice(0, at)
      if (at !== -1) this.use(tokens.slice(at + 1), segment)
      for (const name of namesOf(targets)) this.scopes.define(name)
    },
    macro: (tokens, segment) => {
      const [name, ...rest] = tokens
      if (name !== undefined) this.scopes.define(name.text)
      this.scopes.open(this.signature(rest, segment))
    },
    call: (tokens, segment) => {
      const end = tokens[0]?.text === '(' ? tokens.findIndex(({ text }) => text === ')') : -1
      const parameters = this.signature(tokens.slice(0, end + 1), segment)
      this.use(tokens.slice(end + 1), segment)
      this.scopes.open(parameters)
    },
    with: (tokens, segment) => {
      const parameters = this.signature(tokens, segment)
      this.scopes.open(parameters)
    },
    block: () => this.scopes.open([]),
    filter: (tokens, segment) => {
      this.use([{ kind: 'sign', text: '|' }, ...tokens], segment)
      this.scopes.open([])
    },
    import: (tokens, segment) => this.imported(tokens, segment),
    from: (tokens, segment) => this.imported(tokens, segment),
  }

  /** Reads `a, b=expression`: returns the names and counts the expressions as uses. */
  private signature(tokens: readonly Token[], segment: Segment): string[] {
    const names: string[] = []
    for (const part of splitAtCommas(tokens)) {
      const [name] = part
      if (name?.kind === 'name') names.push(name.text)
      this.use(part.slice(2), segment)
    }
    return names
  }

  private imported(tokens: readonly Token[], segment: Segment): void {
    const at = tokens.findIndex(({ text }) => text === 'as' || text === 'import')
    this.use(tokens.slice(0, at === -1 ? tokens.length : at), segment)
    if (at !== -1) for (const name of namesOf(tokens.slice(at + 1))) this.scopes.define(name)
  }

  private use(tokens: readonly Token[], { start }: Segment): void {
    for (const name of usesIn(tokens)) {
      const isKnown = ALWAYS.has(root(name)) || this.scopes.has(root(name))
      if (!isKnown && !this.found.has(name)) this.found.set(name, this.lines.at(start))
    }
  }
}

/** The names defined at a place, however many statements surround it. */
class Scopes {
  readonly outermost = new Set<string>()
  private readonly inner: Set<string>[] = []
  /** The number of scopes with each name. */
  private readonly counts = new Map<string, number>()

  has(name: string): boolean {
    return this.counts.has(name)
  }

  define(name: string): void {
    const scope = this.inner.at(-1) ?? this.outermost
    if (scope.has(name)) return
    scope.add(name)
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  open(names: readonly string[]): void {
    this.inner.push(new Set())
    for (const name of names) this.define(name)
  }

  close(): void {
    for (const name of this.inner.pop() ?? []) {
      const count = this.counts.get(name) ?? 0
      if (count > 1) this.counts.set(name, count - 1)
      else this.counts.delete(name)
    }
  }
}

const CLOSERS: ReadonlySet<string> = new Set('endfor endmacro endcall endwith endblock endfilter'.split(' '))

function usesIn(tokens: readonly Token[]): string[] {
  const names: string[] = []
  for (let at = 0; at < tokens.length; at++) {
    if (!isUse(tokens, at)) continue
    let name = tokens[at]?.text ?? ''
    while (tokens[at + 1]?.text === '.' && tokens[at + 2]?.kind === 'name') {
      // A called part is a method, not part of the name.
      if (tokens[at + 3]?.text !== '(') name += `.${tokens[at + 2]?.text}`
      at += 2
    }
    names.push(name)
  }
  return names
}

/** Tells whether a name stands for a value: not a filter, test, attribute or argument name. */
function isUse(tokens: readonly Token[], at: number): boolean {
  const token = tokens[at]
  if (token?.kind !== 'name' || WORDS.has(token.text)) return false
  const before = tokens[at - 1]?.text
  if (before === '|' || before === '.' || before === 'is') return false
  if (before === 'not' && tokens[at - 2]?.text === 'is') return false
  return tokens[at + 1]?.text !== '='
}

function namesOf(tokens: readonly Token[]): string[] {
  return tokens.filter(({ kind, text }) => kind === 'name' && !WORDS.has(text)).map(({ text }) => text)
}

/** Splits at commas outside brackets; removes brackets around the whole. */
function splitAtCommas(tokens: readonly Token[]): Token[][] {
  const inner = tokens[0]?.text === '(' ? tokens.slice(1, -1) : tokens
  const parts: Token[][] = [[]]
  let depth = 0
  for (const token of inner) {
    if ('([{'.includes(token.text)) depth++
    if (')]}'.includes(token.text)) depth--
    if (token.text === ',' && depth === 0) parts.push([])
    else parts.at(-1)?.push(token)
  }
  return parts
}

function root(name: string): string {
  return name.split('.', 1)[0] ?? name
}
