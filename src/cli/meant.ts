import type { Command } from './command.ts'

export interface Meant {
  readonly names: readonly string[]
  /** So many letters at the beginning make a name probable. */
  readonly alike: number
  readonly sign?: string
}

/** A name with the same letters in another order, or that begins alike, is probably what was meant. */
export function meant(name: string, { names, alike, sign = '' }: Meant): string {
  const found =
    names.find((one) => lettersOf(one) === lettersOf(name)) ?? names.find((one) => one.startsWith(name.slice(0, alike)))
  return found === undefined || name.length < 2 ? '' : ` Did you mean "${sign}${found}"?`
}

export function noCommand(name: string, commands: readonly Command[]): string {
  return `There is no command "${name}".${meant(name, { names: commands.map((command) => command.name), alike: 2 })}`
}

function lettersOf(word: string): string {
  return [...word].sort().join('')
}
