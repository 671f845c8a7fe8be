import type { Grant } from '../../index.ts'
import type { ModelUse } from '../../recipe/index.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import type { Paint } from '../terminal/paint.ts'

export function modelText({ name, where, trouble }: ModelUse): string {
  const who = name === null ? '' : `${name}, named by ${where}`
  return [who, trouble ?? ''].filter((text) => text !== '').join('; ')
}

/** A line for each that has something to say. */
export function factLines(facts: readonly (readonly [name: string, value: string])[], paint: Paint): string {
  return facts
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `  ${paint('dim', name.padEnd(9))} ${oneLine(value)}\n`)
    .join('')
}

export function grantLines({ use, ask, deny, delegate }: Grant): string {
  return [
    ['use', use],
    ['delegate', delegate],
    ['ask', ask],
    ['deny', deny],
  ]
    .flatMap(([name, rules]) => (rules === undefined ? [] : [`${String(name).padEnd(9)} ${[...rules].join(' ')}`]))
    .join('\n')
}

export function section(title: string, text: string, paint: Paint): string {
  if (text.trim() === '') return ''
  const lines = cleanText(text.trimEnd()).split('\n')
  return `${paint('bold', title)}\n${lines.map((line) => `  ${line}`.trimEnd()).join('\n')}\n`
}
