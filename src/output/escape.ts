import { carriageReturn, hexValue, isLineEnd, letterU, letterX } from './chars.ts'

/** Reads one escape of a string, which may come in pieces. */
export class EscapeReader {
  /** What the escape stands for, once `isOpen` is false. */
  text = ''
  isOpen = false
  /** Set when the escape is none of the grammar; `text` is then what was written. */
  isWrong = false

  private readonly isStrict: boolean
  /** What was read of it, from the backslash on. */
  private read = ''
  private code = 0
  /** Hexadecimal digits to come; 0 before the character behind the backslash. */
  private digits = 0
  /** A backslash and a carriage return take the line feed behind them along. */
  private isAfterReturn = false

  constructor(isStrict: boolean) {
    this.isStrict = isStrict
  }

  open(): void {
    this.text = ''
    this.isOpen = true
    this.isWrong = false
    this.read = '\\'
    this.code = 0
    this.digits = 0
    this.isAfterReturn = false
  }

  /** Takes one more character and says whether it belongs to the escape. */
  take(char: string): boolean {
    if (this.isAfterReturn) return this.close('', char === '\n')
    if (this.digits > 0) return this.takeDigit(char)
    this.read += char
    const code = char.charCodeAt(0)
    if (code === letterU) this.digits = 4
    else if (code === letterX && !this.isStrict) this.digits = 2
    else if (code === carriageReturn && !this.isStrict) this.isAfterReturn = true
    else this.takeSingle(char, code)
    return true
  }

  private takeSingle(char: string, code: number): void {
    const meant = (this.isStrict ? strictEscapes : looseEscapes).get(char)
    if (meant !== undefined) this.close(meant, true)
    else if (this.isStrict) this.refuse()
    else this.close(isLineEnd(code) ? '' : char, true)
  }

  private takeDigit(char: string): boolean {
    const value = hexValue(char.charCodeAt(0))
    if (value < 0) return this.refuse()
    this.read += char
    this.code = this.code * 16 + value
    this.digits--
    if (this.digits > 0) return true
    return this.close(String.fromCharCode(this.code), true)
  }

  private refuse(): boolean {
    this.isWrong = true
    return this.close(this.read, false)
  }

  private close(text: string, isTaken: boolean): boolean {
    this.text = text
    this.isOpen = false
    return isTaken
  }
}

const strictEscapes = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
])

/** Any other character stands for itself. */
const looseEscapes = new Map([...strictEscapes, ['v', '\v'], ['0', '\0']])
