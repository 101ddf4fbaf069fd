"""tensorwright: a learning tensor compiler."""
