import { CliError, EXIT } from '../../command/command.ts'

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** Reads the time of an option in milliseconds: `90s`, `15m`, `12h`, `30d` or `8w`. */
export function timeOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const [, amount = '', unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)([smhdw])$/.exec(text.trim()) ?? []
  const ms = UNITS[unit]
  if (ms !== undefined) return Number(amount) * ms
  throw new CliError(`--${option} is a time with its unit: 90s, 15m, 12h, 30d or 8w.`, EXIT.usage)
}
