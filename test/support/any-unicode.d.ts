import fc from 'fast-check'
/** Text of any characters. As `unit: 'binary'`, which first makes a map of all there are: that takes a second and 100 MB. */
export declare function anyUnicode(length?: {
  readonly minLength?: number
  readonly maxLength?: number
}): fc.Arbitrary<string>
