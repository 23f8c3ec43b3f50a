

def load(path=None):
    """The network with its weights, ready to run; .train() before training."""
    model = Network()
    state = read_safetensors(path or pathlib.Path(__file__).with_name("weights.safetensors"))
    state = {".".join(attributes(name)): values for name, values in state.items()}
    missing = [name for name in model.load_state_dict(state, strict=False).missing_keys if not name.endswith("num_batches_tracked")]
    if missing:
        raise ValueError(f"the weights lack {', '.join(missing[:5])}")
    return model.eval()


def save(model, path):
    write_safetensors({name_of(name): values for name, values in model.state_dict().items() if not name.endswith("num_batches_tracked")}, path)


if __name__ == "__main__":
    network = load()
    print(network)
    print(sum(p.numel() for p in network.parameters()), "parameters")
