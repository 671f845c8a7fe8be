/** One word of an expression. */
export interface Token {
  readonly kind: 'name' | 'number' | 'string' | 'sign'
  readonly text: string
}

const TOKEN =
  /"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'|[\p{L}_][\p{L}\p{N}_]*|\d[\d_]*(?:\.\d+)?|\*\*|\/\/|[=!<>]=|\S/gsu

/** The words of an expression, in order. */
export function tokensOf(expression: string): Token[] {
  return Array.from(expression.matchAll(TOKEN), ([text]) => ({ kind: kindOf(text), text }))
}

function kindOf(text: string): Token['kind'] {
  if (/^["']/.test(text) && text.length > 1) return 'string'
  if (/^[\p{L}_]/u.test(text)) return 'name'
  return /^\d/.test(text) ? 'number' : 'sign'
}
