/**
 * Stores a number for each row of the index, 0 by default. A typed array costs one cache miss per access. A Map with tens of thousands of
 * organizations costs several, in every check.
 */

const INITIAL_ROWS = 256

export class RowTable {
  #numbers = new Int32Array(INITIAL_ROWS)

  get(row: number): number {
    return row < this.#numbers.length ? this.#numbers[row]! : 0
  }

  set(row: number, number: number): void {
    if (row >= this.#numbers.length) {
      const larger = new Int32Array(Math.max(row + 1, 2 * this.#numbers.length))
      larger.set(this.#numbers)
      this.#numbers = larger
    }
    this.#numbers[row] = number
  }

  clear(): void {
    this.#numbers.fill(0)
  }
}
