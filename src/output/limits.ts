/** What is larger ends in the state `limit`. */
export interface ParserLimits {
  /** How many objects and lists may lie in one another; 64 unless said. */
  readonly maxDepth: number
  /** Characters of the text, with all that is around the document; 16,000,000 unless said. */
  readonly maxLength: number
  /** Values of the document, with those in one another; 100,000 unless said. */
  readonly maxValues: number
}

/** Those of all JSON that is read here. */
export const PARSER_LIMITS: ParserLimits = { maxDepth: 64, maxLength: 16_000_000, maxValues: 100_000 }
