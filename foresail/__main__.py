"""`python -m foresail` is the command `foresail`."""

from foresail.cli import main

if __name__ == "__main__":
    main()
